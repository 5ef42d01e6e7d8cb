//! Parses HTML into a tree with a limited number of nodes.
//!
//! Unclosed formatting elements are repeated in every later paragraph, so nodes are counted when they are created and
//! not estimated from the bytes.

use std::borrow::Cow;
use std::cell::Cell;
use std::time::Instant;

use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, parse_document};
use markup5ever_rcdom::{Handle, RcDom};

/// Limit for elements, attributes and comments together.
const MAX_NODES: usize = 250_000;
pub(super) const TOO_MANY: &str = "the page has too many elements";
pub(super) const TOO_SLOW: &str = "the page takes too long to parse";

/// Parses HTML in small pieces, each of which ends at most one token, so that the limits are checked often.
pub(super) fn parse_html(html: &str, until: Instant) -> Result<Handle, String> {
    let mut parser = parse_document(CountingSink::default(), ParseOpts::default());
    for piece in html.split_inclusive(|c: char| !c.is_alphanumeric()) {
        parser.process(StrTendril::from_slice(piece));
        if parser.tokenizer.sink.sink.nodes.get() > MAX_NODES {
            return Err(TOO_MANY.into());
        }
        if Instant::now() > until {
            return Err(TOO_SLOW.into());
        }
    }
    Ok(parser.finish())
}

/// Builds the tree and counts the nodes that are created.
#[derive(Default)]
struct CountingSink {
    tree: RcDom,
    nodes: Cell<usize>,
}

impl CountingSink {
    fn count(&self, nodes: usize) {
        self.nodes.set(self.nodes.get().saturating_add(nodes));
    }
}

impl TreeSink for CountingSink {
    type Handle = Handle;
    type Output = Handle;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Handle {
        self.tree.document
    }

    /// Most pages have errors; ignore them.
    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        self.tree.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        self.tree.elem_name(target)
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, flags: ElementFlags) -> Handle {
        self.count(1 + attributes.len());
        self.tree.create_element(name, attributes, flags)
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        self.count(1);
        self.tree.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Handle {
        self.count(1);
        self.tree.create_pi(target, data)
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.tree.append(parent, child);
    }

    fn append_based_on_parent_node(&self, element: &Handle, before: &Handle, child: NodeOrText<Handle>) {
        self.tree.append_based_on_parent_node(element, before, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.tree.append_doctype_to_document(name, public, system);
    }

    fn get_template_contents(&self, target: &Handle) -> Handle {
        self.tree.get_template_contents(target)
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        self.tree.same_node(one, other)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.tree.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        self.tree.append_before_sibling(sibling, child);
    }

    fn add_attrs_if_missing(&self, target: &Handle, attributes: Vec<Attribute>) {
        self.count(attributes.len());
        self.tree.add_attrs_if_missing(target, attributes);
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.tree.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Handle, parent: &Handle) {
        self.tree.reparent_children(node, parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &Handle) -> bool {
        self.tree.is_mathml_annotation_xml_integration_point(target)
    }
}
