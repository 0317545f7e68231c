//! Draws a control-flow graph as an SVG, with nothing but this library.
//!
//! The picture is layered: control runs from top to bottom, every edge leaves a node at its bottom and enters one at
//! its top, in horizontal and vertical lines. Loops are tinted boxes around their nodes, one inside the other.
//!
//! The boxes come first. Each loop is laid out for itself and then is one large node, with ports on its border, in
//! the layout of whatever is around it. So no node ever stands in the box of a loop that it is not part of, and an
//! edge that leaves a loop is a chain of pieces, one for each level, joined at the ports (`nest`). One level goes
//! through the steps of Sugiyama's method, a module for each (`level`, `geometry` tie them together):
//!
//! | step | module | what it decides |
//! | --- | --- | --- |
//! | rank | `rank` | which edges go back up, and the row of every node |
//! | rows | `rows` | the places that long edges and back edges take in the rows they pass |
//! | order | `order` | left to right in each row, with few crossings |
//! | ports | `ports` | where on a border each edge is attached |
//! | coordinates | `coords` | x, with long edges straight |
//! | straight lines | `straighten` | small moves that save bends |
//! | channels | `channel` | the heights of the horizontal lines between two rows, and so y |
//!
//! Invariants: the same drawing gives the same picture. Any drawing gives one, even if it names nodes or loops that do
//! not exist: such edges are left out and such nodes are in no loop. Nodes do not overlap; lines never run through
//! nodes. Lines lie on each other only if they lead to the same node, or are the cases of one indirect jump.

mod channel;
mod coords;
mod geometry;
mod level;
mod nest;
mod order;
mod ports;
mod rank;
mod rows;
mod straighten;
mod svg;

pub(super) use svg::Escaped;

/// What to draw. Nodes, edges and loops are named by their index.
#[derive(Clone, Default, Debug)]
pub struct Drawing {
    pub title: String,
    /// The first is the entry, and stands at the top.
    pub nodes: Vec<NodeBox>,
    pub edges: Vec<Link>,
    pub loops: Vec<LoopBox>,
}

#[derive(Clone, Default, Debug)]
pub struct NodeBox {
    /// Set apart from the lines; may be empty.
    pub heading: String,
    pub lines: Vec<String>,
    pub tooltip: String,
    /// From 0 (never runs) to 1 (hottest), if it is known.
    pub heat: Option<f64>,
    pub class: NodeClass,
    /// The innermost loop around it.
    pub in_loop: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum NodeClass {
    #[default]
    Plain,
    Entry,
    /// Control leaves the function here.
    Exit,
    /// What comes after it is not fully known.
    Unknown,
}

#[derive(Clone, Debug)]
pub struct Link {
    pub from: usize,
    pub to: usize,
    pub kind: LinkKind,
    pub label: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LinkKind {
    Taken,
    FallThrough,
    /// To where a call returns.
    AfterCall,
    /// A case of an indirect jump.
    Indirect,
    /// To the header of a loop around it.
    Back,
}

#[derive(Clone, Default, Debug)]
pub struct LoopBox {
    pub label: String,
    pub tooltip: String,
    pub parent: Option<usize>,
    pub irreducible: bool,
}

#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Rect {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// Where everything is, in pixels.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Picture {
    pub width: f64,
    pub height: f64,
    /// By node.
    pub nodes: Vec<Rect>,
    /// By loop; `None` if it has no node, or is so deep inside others that its box is left out.
    pub loops: Vec<Option<Rect>>,
    pub lines: Vec<Line>,
}

/// One line of the picture: all the drawing's edges of one kind between the same two nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    pub from: usize,
    pub to: usize,
    pub kind: LinkKind,
    /// How many edges it stands for.
    pub edges: usize,
    pub label: Option<String>,
    /// The label stands left of the line's start, to keep clear of a neighbour.
    pub label_left: bool,
    /// From the bottom of one node to the top of the other, with a corner at each point between. Empty if the line is
    /// left out because a graph of this size cannot be drawn with all its long lines.
    pub points: Vec<Point>,
}

/// Decides where everything goes.
pub fn place(drawing: &Drawing) -> Picture {
    nest::place(drawing)
}

/// The drawing as a self-contained SVG document: no scripts, no outside resources, for light and dark backgrounds.
pub fn svg(drawing: &Drawing) -> String {
    svg::write(drawing, &place(drawing))
}

/// Width of a character of the monospaced font that the picture uses.
const CHAR_WIDTH: f64 = 7.2;
/// From one line of text to the next.
const LINE_HEIGHT: f64 = 15.0;
/// Between a node's text and its border, left and right.
const TEXT_PADDING_X: f64 = 9.0;
/// The same, above and below.
const TEXT_PADDING_Y: f64 = 6.0;
/// Width of a character in labels of edges and loops, which are smaller.
const SMALL_CHAR_WIDTH: f64 = 6.0;

fn text_width(text: &str, char_width: f64) -> f64 {
    text.chars().count() as f64 * char_width
}
