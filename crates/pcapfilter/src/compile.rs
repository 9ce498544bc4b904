//! Compiles the text of an expression to programs.

use crate::ast::{Expr, Leaf, Primitive};
use crate::build::{Builder, ProgramPurpose};
use crate::condition::Condition;
use crate::emit::{check_length, emit};
use crate::error::FilterError;
use crate::generate::{Generator, OFFSET_SLOTS};
use crate::graph::{ACCEPT, Graph, REJECT};
use crate::group;
use crate::instruction::{Program, code::RET_K};
use crate::names::NameSource;
use crate::optimise::optimise;
use crate::parser::{self, ExtraWord};
use crate::target::{FilterTarget, PacketOrigin};
use crate::value::Values;
use crate::words::IdKind;

/// Maximum length of an expression in bytes. 1,000 IPv6 hosts fit; time and memory grow with the length.
///
/// Bound: bytes of a pcap filter. Beyond: the filter is refused. By: the user.
pub const EXPRESSION_MAX: usize = 64 * 1024;

/// A compiled expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The kernel's program. It accepts every packet that passes; if [`Filter::rest`] is None, it decides alone.
    pub kernel: Program,
    /// Checks the packets that the kernel's program has accepted. Executed by [`crate::run`].
    pub rest: Option<Program>,
    /// The caller's words in the expression, indexed by the number that [`crate::run`] passes to its callback.
    pub extras: Vec<Extra>,
}

/// One of the caller's words in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    /// Index into the list of words.
    pub word: usize,
    /// Its argument; empty for words without one.
    pub argument: String,
    /// Its position in the expression, in bytes from 1.
    pub column: usize,
}

/// Compiles an expression of pcap-filter(7). Fails with libpcap's message where libpcap fails. Also fails for
/// expressions that are longer than [`EXPRESSION_MAX`] bytes or nested too deeply, and for programs that the kernel
/// would reject. 1,000 hosts take milliseconds.
pub fn compile(text: &str, target: &FilterTarget, names: &dyn NameSource) -> Result<Filter, FilterError> {
    compile_with(text, target, names, &[])
}

/// Like [`compile`], with additional words that the caller evaluates while the program runs.
pub fn compile_with(
    text: &str,
    target: &FilterTarget,
    names: &dyn NameSource,
    words: &[ExtraWord],
) -> Result<Filter, FilterError> {
    if text.len() > EXPRESSION_MAX {
        return Err(FilterError::new(format!("expression is longer than {EXPRESSION_MAX} bytes"), EXPRESSION_MAX));
    }
    if target.snaplen == 0 {
        return Err(FilterError::new("snaplen of 0 rejects all packets", 0));
    }
    let parser::ParseResult { mut leaves, tree } = parser::parse(text, words);
    let extras = number_extras(&mut leaves);
    let mut values =
        if target.origin == PacketOrigin::LiveTagged { Values::with_metadata_tag() } else { Values::default() };
    let mut tree = tree;
    let sets = match &mut tree {
        Ok(Some(tree)) => group::take_sets(tree, &leaves),
        _ => Default::default(),
    };
    let mut generator = Generator::new(&mut values, target, names);
    let mut conditions = Vec::with_capacity(leaves.len());
    for (number, leaf) in leaves.iter().enumerate() {
        let mut condition = generator.leaf(leaf)?;
        if let Some(set) = sets.get(&number) {
            condition = generator
                .set(set.qualifiers, set.members, &group::ids(set, &leaves))
                .map_err(|message| FilterError::new(message, leaf.at))?;
        }
        conditions.push(condition);
    }
    // The parser's error is reported after errors of the leaves before that position, as in libpcap.
    let Some(tree) = tree? else {
        let kernel = emit(&Graph::new(), &values, ACCEPT, target.snaplen)?;
        return Ok(Filter { kernel, rest: None, extras });
    };
    if values.may_read_tag() {
        return Err(FilterError::new("a computed offset may point into the VLAN tag", 0));
    }
    let needs_verdict = !leaves.iter().any(is_unoptimised);
    let (kernel, is_superset) = program(&tree, &conditions, &mut values, target, ProgramPurpose::Superset)?;
    if needs_verdict && kernel.instructions.iter().all(|instruction| instruction.code == RET_K && instruction.k == 0) {
        return Err(FilterError::new("expression rejects all packets", 0));
    }
    check_length(&kernel)?;
    let rest = match is_superset {
        true => Some(program(&tree, &conditions, &mut values, target, ProgramPurpose::Exact)?.0),
        false => None,
    };
    Ok(Filter { kernel, rest, extras })
}

/// True for primitives that libpcap does not optimise: it does not detect that no packet passes.
fn is_unoptimised(leaf: &Leaf) -> bool {
    match &leaf.primitive {
        Primitive::Geneve(_) => true,
        Primitive::Id(Some(qualifiers), _) => qualifiers.kind == IdKind::Protochain,
        _ => false,
    }
}

/// Numbers the caller's words.
fn number_extras(leaves: &mut [Leaf]) -> Vec<Extra> {
    let mut extras = Vec::new();
    for leaf in leaves {
        let column = leaf.at + 1;
        if let Primitive::Extra(word, argument) = &mut leaf.primitive {
            extras.push(Extra { word: *word, argument: std::mem::take(argument), column });
            *word = extras.len() - 1;
        }
    }
    extras
}

/// Builds a program. Also returns whether it accepts more packets than the expression.
fn program(
    tree: &Expr,
    conditions: &[Condition],
    values: &mut Values,
    target: &FilterTarget,
    purpose: ProgramPurpose,
) -> Result<(Program, bool), FilterError> {
    let mut builder = Builder { graph: Graph::new(), values, conditions, purpose, is_superset: false };
    let mut root = builder.build_root(tree, ACCEPT, REJECT);
    for slot in OFFSET_SLOTS {
        let zero = builder.values.constant(0);
        root = builder.graph.store(slot, zero, root);
    }
    let Builder { mut graph, is_superset, .. } = builder;
    let root = optimise(&mut graph, values, root);
    Ok((emit(&graph, values, root, target.snaplen)?, is_superset))
}
