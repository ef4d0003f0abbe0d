//! Cycles in a graph, without recursion: a chain may be as long as a schedule.

/// One cycle of each group of nodes that can all be reached from one another. `next[n]` are the nodes
/// that `n` points to; one that points to itself alone is no cycle here.
pub(super) fn cycles(next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let groups = groups(next);
    let mut told = vec![false; next.len()];
    let mut steps: Vec<Option<usize>> = vec![None; next.len()];
    let mut cycles = Vec::new();
    for start in 0..next.len() {
        let group = groups[start];
        if told[group] {
            continue;
        }
        let inside = |node: usize| next[node].iter().copied().find(|to| groups[*to] == group && *to != node);
        // In such a group every node has a way on, so that the walk comes round.
        let mut walk = Vec::new();
        let mut at = Some(start);
        while let Some(node) = at {
            if let Some(first) = steps[node] {
                cycles.push(walk.split_off(first));
                break;
            }
            steps[node] = Some(walk.len());
            walk.push(node);
            at = inside(node);
        }
        told[group] = true;
    }
    cycles
}

/// For each node the number of its group, by Kosaraju's two walks.
fn groups(next: &[Vec<usize>]) -> Vec<usize> {
    let mut before = vec![Vec::new(); next.len()];
    for (node, to) in next.iter().enumerate().flat_map(|(node, all)| all.iter().map(move |to| (node, *to))) {
        before[to].push(node);
    }
    let mut group: Vec<Option<usize>> = vec![None; next.len()];
    for (number, root) in in_order_of_ends(next).into_iter().rev().enumerate() {
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if group[node].is_none() {
                group[node] = Some(number);
                open.extend(before[node].iter().filter(|to| group[**to].is_none()));
            }
        }
    }
    group.into_iter().map(|number| number.expect("the first walk comes to every node")).collect()
}

/// All nodes, each behind those that it led the walk to.
fn in_order_of_ends(next: &[Vec<usize>]) -> Vec<usize> {
    let mut seen = vec![false; next.len()];
    let mut ends = Vec::with_capacity(next.len());
    for root in 0..next.len() {
        // A node, and how many of its ways were taken.
        let mut open = if seen[root] { Vec::new() } else { vec![(root, 0)] };
        seen[root] = true;
        while let Some((node, taken)) = open.last_mut() {
            match next[*node].get(*taken) {
                Some(to) => {
                    *taken += 1;
                    if !std::mem::replace(&mut seen[*to], true) {
                        open.push((*to, 0));
                    }
                }
                None => {
                    ends.push(*node);
                    open.pop();
                }
            }
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(next: &[&[usize]]) -> Vec<Vec<usize>> {
        let next: Vec<Vec<usize>> = next.iter().map(|to| to.to_vec()).collect();
        let mut found = cycles(&next);
        found.iter_mut().for_each(|cycle| cycle.sort_unstable());
        found.sort();
        found
    }

    #[test]
    fn each_group_has_one_cycle_and_what_leads_there_has_none() {
        assert_eq!(sorted(&[&[1], &[2], &[1], &[0, 1]]), [[1, 2]]);
        assert_eq!(sorted(&[&[1, 3], &[2], &[1], &[0]]), [[0, 3], [1, 2]], "a way from one cycle into another");
        assert_eq!(sorted(&[&[1], &[], &[0, 1]]), Vec::<Vec<usize>>::new());
        assert_eq!(sorted(&[&[0, 1], &[]]), Vec::<Vec<usize>>::new(), "one that points to itself");
        assert_eq!(sorted(&[&[0, 1], &[0]]), [[0, 1]]);
    }

    #[test]
    fn a_cycle_is_in_the_order_of_its_steps() {
        assert_eq!(cycles(&[vec![2], vec![0], vec![1]]), [[0, 2, 1]]);
    }

    #[test]
    fn the_longest_chain_takes_no_stack() {
        const LONG: usize = 100_000;
        let mut next: Vec<Vec<usize>> = (0..LONG).map(|node| if node == 0 { vec![] } else { vec![node - 1] }).collect();
        assert!(cycles(&next).is_empty());
        next[0].push(LONG - 1);
        assert_eq!(cycles(&next).len(), 1);
    }
}
