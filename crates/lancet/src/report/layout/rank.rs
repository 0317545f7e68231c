//! Which row each item stands in.
//!
//! Edges that close a cycle, as a depth-first search finds them, are set aside as back edges. The others make rows by
//! longest path: an item stands below everything that leads to it. Then items with slack move down where that
//! shortens more edges than it lengthens.

pub(super) struct Ranks {
    /// By item.
    pub rank: Vec<usize>,
    pub count: usize,
}

/// `edges` are pairs of items; `first` says where to start searching, the rest follows in order. The very first stays
/// at the top.
pub(super) fn ranks(items: usize, edges: &[(usize, usize)], first: &[usize]) -> Ranks {
    let mut out = vec![Vec::new(); items];
    for (edge, &(from, _)) in edges.iter().enumerate() {
        out[from].push(edge);
    }
    let (back, topological) = search(items, edges, &out, first);

    let mut rank = vec![0; items];
    let mut forward_in = vec![0; items];
    for &item in &topological {
        for &edge in out[item].iter().filter(|&&e| !back[e]) {
            let to = edges[edge].1;
            rank[to] = rank[to].max(rank[item] + 1);
            forward_in[to] += 1;
        }
    }
    for &item in topological.iter().rev() {
        let forward_out = || out[item].iter().filter(|&&e| !back[e]);
        if forward_out().count() > forward_in[item]
            && first.first() != Some(&item)
            && let Some(lowest) = forward_out().map(|&e| rank[edges[e].1] - 1).min()
        {
            rank[item] = lowest;
        }
    }
    let count = rank.iter().max().map_or(0, |r| r + 1);
    Ranks { rank, count }
}

/// Finds the back edges, and an order in which all other edges lead forward.
fn search(items: usize, edges: &[(usize, usize)], out: &[Vec<usize>], first: &[usize]) -> (Vec<bool>, Vec<usize>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut state = vec![State::New; items];
    let mut back = vec![false; edges.len()];
    let mut order = Vec::with_capacity(items);
    let mut stack = Vec::new();
    for start in first.iter().copied().chain(0..items) {
        if state[start] != State::New {
            continue;
        }
        state[start] = State::Open;
        stack.push((start, 0));
        while let Some((item, next)) = stack.last_mut() {
            let Some(&edge) = out[*item].get(*next) else {
                state[*item] = State::Done;
                order.push(*item);
                stack.pop();
                continue;
            };
            *next += 1;
            let to = edges[edge].1;
            match state[to] {
                State::New => {
                    state[to] = State::Open;
                    stack.push((to, 0));
                }
                State::Open => back[edge] = true,
                State::Done => {}
            }
        }
    }
    order.reverse();
    (back, order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_with_a_skipped_block() {
        let ranks = ranks(5, &[(0, 1), (1, 2), (1, 3), (2, 3), (3, 1), (3, 4), (4, 4)], &[0]);
        assert_eq!(ranks.rank, [0, 1, 2, 3, 4]);
        assert_eq!(ranks.count, 5);
    }

    #[test]
    fn a_second_source_stands_just_above_its_successor() {
        assert_eq!(ranks(4, &[(0, 1), (1, 2), (3, 2)], &[0]).rank, [0, 1, 2, 1]);
    }
}
