//! Finds hosts, networks or ports that one set can test: with the same qualifiers, joined by `or`.

use crate::ast::{Expr, Id, Join, Leaf, Primitive, Qualifiers};
use crate::generate::{MemberKind, is_uniform, members};
use std::collections::{HashMap, HashSet};

/// The fewest leaves that make a set.
const SET_MIN: usize = 2;

/// A set: its qualifiers, the kind of its members, and its leaves. Its condition replaces the first leaf's condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Set {
    pub(crate) qualifiers: Qualifiers,
    pub(crate) members: MemberKind,
    pub(crate) leaves: Vec<usize>,
}

/// Removes the leaves of sets from the tree except the first leaf of each set. Returns the sets by that leaf.
///
/// A set tests all sources before any destination. The programs of libpcap's optimiser do the same if only numbers
/// differ; otherwise they compare one leaf after the other, and the first leaf of the run stays outside the set: if it
/// fails, both addresses are present. So both give the same verdict on a packet that ends between its addresses.
pub(crate) fn take_sets(tree: &mut Expr, leaves: &[Leaf]) -> HashMap<usize, Set> {
    let mut sets = HashMap::new();
    visit(tree, leaves, &mut sets);
    sets
}

fn visit(tree: &mut Expr, leaves: &[Leaf], sets: &mut HashMap<usize, Set>) {
    match tree {
        Expr::Leaf(_) => {}
        Expr::Not(inner) => visit(inner, leaves, sets),
        Expr::Chain(first, rest) => {
            flatten(first, rest);
            visit(first, leaves, sets);
            for (_, part) in rest.iter_mut() {
                visit(part, leaves, sets);
            }
            let taken = chain(first, rest, leaves, sets);
            rest.retain(|(_, part)| !matches!(part, Expr::Leaf(leaf) if taken.contains(leaf)));
        }
    }
}

/// Converts `a or (b or c)` to `a or b or c`.
fn flatten(first: &mut Expr, rest: &mut Vec<(Join, Expr)>) {
    let is_any = |part: &Expr| matches!(part, Expr::Chain(_, rest) if rest.iter().all(|(join, _)| *join == Join::Or));
    if !is_any(first) && !rest.iter().any(|(join, part)| *join == Join::Or && is_any(part)) {
        return;
    }
    let mut flat = Vec::with_capacity(rest.len() + 1);
    let outer = std::mem::replace(first, Expr::Leaf(0));
    for (join, part) in std::iter::once((Join::Or, outer)).chain(rest.drain(..)) {
        match part {
            Expr::Chain(inner, more) if join == Join::Or && more.iter().all(|(join, _)| *join == Join::Or) => {
                flat.push((join, *inner));
                flat.extend(more);
            }
            part => flat.push((join, part)),
        }
    }
    *first = flat.remove(0).1;
    *rest = flat;
}

fn kind_of(leaf: &Leaf) -> Option<(Qualifiers, MemberKind)> {
    match &leaf.primitive {
        Primitive::Id(Some(qualifiers), id) => members(*qualifiers, id).map(|members| (*qualifiers, members)),
        _ => None,
    }
}

/// Returns the leaves of a chain that became part of a set, sorted.
fn chain(first: &Expr, rest: &[(Join, Expr)], leaves: &[Leaf], sets: &mut HashMap<usize, Set>) -> HashSet<usize> {
    let mut taken = HashSet::new();
    // The sets of the current run.
    let mut run: Vec<Set> = Vec::new();
    let parts = std::iter::once((Join::Or, first)).chain(rest.iter().map(|(join, part)| (*join, part)));
    for (join, part) in parts {
        let leaf = match part {
            Expr::Leaf(leaf) if join == Join::Or => leaves.get(*leaf).and_then(kind_of).map(|kind| (*leaf, kind)),
            _ => None,
        };
        let Some((leaf, (qualifiers, members))) = leaf else {
            close(&mut run, leaves, sets, &mut taken);
            continue;
        };
        match run.iter_mut().find(|set| set.qualifiers == qualifiers && set.members == members) {
            Some(set) => set.leaves.push(leaf),
            None => run.push(Set { qualifiers, members, leaves: vec![leaf] }),
        }
    }
    close(&mut run, leaves, sets, &mut taken);
    taken
}

fn close(run: &mut Vec<Set>, leaves: &[Leaf], sets: &mut HashMap<usize, Set>, taken: &mut HashSet<usize>) {
    for mut set in run.drain(..) {
        if !is_uniform(set.members, &ids(&set, leaves)) {
            set.leaves.remove(0);
        }
        if set.leaves.len() < SET_MIN {
            continue;
        }
        let Some(first) = set.leaves.first().copied() else { continue };
        taken.extend(set.leaves.iter().skip(1));
        sets.insert(first, set);
    }
}

/// Returns the ids of a set's leaves.
pub(crate) fn ids<'a>(set: &Set, leaves: &'a [Leaf]) -> Vec<&'a Id> {
    let id = |leaf: &usize| match leaves.get(*leaf).map(|leaf| &leaf.primitive) {
        Some(Primitive::Id(_, id)) => Some(id),
        _ => None,
    };
    set.leaves.iter().filter_map(id).collect()
}
