//! Pictures of a study, as SVG.

use std::fmt::Write;

use super::{Profile, Study};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
/// Around the drawing: left, right, top, bottom.
const MARGINS: [f64; 4] = [70.0, 30.0, 52.0, 50.0];
const COLOURS: [&str; 4] = ["#4269d0", "#efb118", "#ff725c", "#3ca951"];

/// A frame with axes that run to `x_max` and to a round number above `y_max`.
struct Plot {
    svg: String,
    x_max: f64,
    y_max: f64,
}

impl Plot {
    fn new(title: &str, x_label: &str, y_label: &str, x_max: f64, y_max: f64) -> Plot {
        let step = round_step(y_max);
        let steps = (positive(y_max) / step).ceil();
        let mut plot = Plot { svg: String::new(), x_max: positive(x_max), y_max: steps * step };
        let (middle, bottom) = (WIDTH / 2.0, HEIGHT - 10.0);
        plot.raw(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>"
        ));
        plot.text(middle, 20.0, "middle", title);
        plot.text(middle, bottom, "middle", x_label);
        let side = format!("transform=\"rotate(-90 14 {0})\"", HEIGHT / 2.0);
        let label = escaped(y_label);
        plot.raw(&format!("<text x=\"14\" y=\"{}\" text-anchor=\"middle\" {side}>{label}</text>", HEIGHT / 2.0));
        for i in 0..=steps as u32 {
            let value = step * f64::from(i);
            let (left, y) = (plot.x(0.0), plot.y(value));
            plot.raw(&format!(
                "<line x1=\"{left:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>",
                WIDTH - MARGINS[1]
            ));
            plot.text(left - 6.0, y + 4.0, "end", &short(value));
        }
        plot
    }

    fn x(&self, value: f64) -> f64 {
        MARGINS[0] + value / self.x_max * (WIDTH - MARGINS[0] - MARGINS[1])
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - MARGINS[3] - value / self.y_max * (HEIGHT - MARGINS[2] - MARGINS[3])
    }

    fn raw(&mut self, line: &str) {
        self.svg.push_str(line);
        self.svg.push('\n');
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        let text = escaped(text);
        self.raw(&format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"));
    }

    fn x_ticks(&mut self) {
        let step = round_step(self.x_max);
        for i in 0..=(self.x_max / step) as u32 {
            let value = step * f64::from(i);
            self.text(self.x(value), HEIGHT - MARGINS[3] + 16.0, "middle", &short(value));
        }
    }

    fn bar(&mut self, x: f64, width: f64, value: f64, colour: &str) {
        let (top, floor) = (self.y(value.max(0.0)), self.y(0.0));
        let height = floor - top;
        self.raw(&format!(
            "<rect x=\"{x:.2}\" y=\"{top:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{colour}\"/>"
        ));
    }

    fn line(&mut self, points: &[(f64, f64)], colour: &str) {
        let mut list = String::new();
        for (x, y) in points {
            // Writing to a string cannot fail.
            let _ = write!(list, "{:.1},{:.1} ", self.x(*x), self.y(*y));
        }
        self.raw(&format!("<polyline points=\"{list}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"));
        for (x, y) in points {
            self.raw(&format!("<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", self.x(*x), self.y(*y)));
        }
    }

    fn legend(&mut self, names: &[&str]) {
        for (i, (name, colour)) in names.iter().zip(COLOURS).enumerate() {
            let x = MARGINS[0] + 10.0 + 150.0 * i as f64;
            self.raw(&format!("<rect x=\"{x}\" y=\"26\" width=\"10\" height=\"10\" fill=\"{colour}\"/>"));
            self.text(x + 14.0, 35.0, "start", name);
        }
    }

    fn finish(mut self) -> String {
        self.raw("</svg>");
        self.svg
    }
}

/// A distance between marks on an axis: 1, 2 or 5 times a power of ten, so that there are 3 to 7 of them.
fn round_step(max: f64) -> f64 {
    let max = positive(max);
    let magnitude = 10f64.powf((max / 3.0).log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|digit| digit * magnitude).find(|step| max / step >= 3.0).unwrap_or(magnitude)
}

fn positive(value: f64) -> f64 {
    if value > 0.0 { value } else { 1.0 }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// As short as can be: `1.5 k`, `20 M`, `0.004`.
fn short(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1e6 => (v / 1e6, " M"),
        v if v >= 1e4 => (v / 1e3, " k"),
        v => (v, ""),
    };
    let digits = format!("{scaled:.4}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}{unit}")
}

/// Data cache misses over time (Figure 9).
pub fn misses_over_time(name: &str, profile: &Profile) -> String {
    let used = profile.slices.iter().rposition(|&misses| misses > 0).map_or(0, |last| last + 1);
    let slices = profile.slices.get(..used).unwrap_or_default();
    let highest = slices.iter().copied().max().unwrap_or(0) as f64;
    let cycles = used as f64 * profile.slice_cycles as f64;
    let y_label = format!("misses in {} Ki cycles", profile.slice_cycles / 1024);
    let x_label = "cycles; what a phase missed is shown where it ended";
    let mut plot = Plot::new(&format!("{name}: data cache misses"), x_label, &y_label, cycles, highest);
    for (i, &misses) in slices.iter().enumerate() {
        let from = plot.x(i as f64 * profile.slice_cycles as f64);
        let to = plot.x((i + 1) as f64 * profile.slice_cycles as f64);
        plot.bar(from, to - from, misses as f64, COLOURS[0]);
    }
    plot.x_ticks();
    plot.finish()
}

/// Time and energy, slowed down over as it is: of the regions and of the programs (Figures 10 and 11).
pub fn bars(studies: &[Study]) -> String {
    let ratio = |to: f64, from: f64| if from > 0.0 { to / from } else { 1.0 };
    let mut groups = Vec::new();
    for study in studies {
        let name = std::path::Path::new(&study.program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        groups.push((
            name,
            [
                ratio(study.region_scaled.seconds, study.region_original.seconds),
                ratio(study.region_scaled.energy, study.region_original.energy),
                ratio(study.scaled.seconds, study.original.seconds),
                ratio(study.scaled.energy, study.original.energy),
            ],
        ));
    }
    let highest = groups.iter().flat_map(|(_, values)| values).fold(1.0f64, |a, &b| a.max(b));
    let count = groups.len().max(1) as f64;
    let mut plot = Plot::new("with scaling, 1 = without", "", "normalized", count, highest);
    for (i, (name, values)) in groups.iter().enumerate() {
        let (left, right) = (plot.x(i as f64), plot.x(i as f64 + 1.0));
        let width = (right - left) / 5.0;
        for (j, value) in values.iter().enumerate() {
            let x = left + width * (j as f64 + 0.55);
            plot.bar(x, width * 0.9, *value, COLOURS[j]);
            plot.text(x + width * 0.45, plot.y(*value) - 3.0, "middle", &format!("{value:.2}"));
        }
        plot.text((left + right) / 2.0, HEIGHT - MARGINS[3] + 16.0, "middle", name);
    }
    plot.legend(&["time, regions", "energy, regions", "time, program", "energy, program"]);
    plot.finish()
}

/// Energy saved and time lost by the whole program, in percent, over the threshold of misses per cycle.
pub fn sweep_curve(name: &str, studies: &[Study]) -> String {
    let of = |value: fn(&Study) -> f64| -> Vec<(f64, f64)> {
        studies.iter().map(|study| (study.thresholds.misses_per_cycle, value(study).max(0.0))).collect()
    };
    let (saved, lost) = (of(|study| -study.changes()[2]), of(|study| study.changes()[3]));
    let x_max = saved.iter().fold(0.0f64, |a, b| a.max(b.0));
    let y_max = saved.iter().chain(&lost).fold(0.0f64, |a, b| a.max(b.1));
    let title = format!("{name}: percent of the program");
    let mut plot = Plot::new(&title, "threshold: misses per cycle", "percent", x_max, y_max);
    plot.line(&saved, COLOURS[0]);
    plot.line(&lost, COLOURS[1]);
    plot.legend(&["energy saved", "time lost"]);
    plot.x_ticks();
    plot.finish()
}
