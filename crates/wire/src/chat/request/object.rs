//! An object whose members are taken out by name, until what is left is not known.

use std::borrow::Cow;
use std::collections::BTreeMap;

use holdfast_domain::request::Opaque;

use super::BadRequest;
use super::field::{Field, Path};
use crate::json::Node;
use crate::nearest::nearest;

/// Names that an object remembers as read: all, except for the body, which has a list.
const REQUESTED_MAX: usize = 8;

/// An object and its path.
#[derive(Debug)]
pub(super) struct Object<'p, 'a> {
    pub(super) path: Path<'p>,
    members: Vec<(Cow<'a, str>, Node<'a>)>,
    /// Names that were read so far: suggestions for a mistyped one.
    requested: [&'static str; REQUESTED_MAX],
    n_requested: usize,
}

impl<'p, 'a> Object<'p, 'a> {
    pub(super) fn read(field: Field<'p, 'a>, what: &str) -> Result<Self, BadRequest> {
        match field.node {
            Node::Object(members) => Ok(Self {
                path: field.path,
                members,
                requested: [""; REQUESTED_MAX],
                n_requested: 0,
            }),
            Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) | Node::Array(_) => {
                Err(field.path.invalid(format_args!("{what}")))
            }
        }
    }

    /// Looks at a member before anything is taken.
    pub(super) fn peek(&self, name: &str) -> Option<&Node<'a>> {
        self.members.iter().find(|(other, _)| other == name).map(|(_, node)| node)
    }

    /// True if there is such a member, and it is not null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.peek(name).is_some_and(|node| *node != Node::Null)
    }

    /// Takes a member that there may be; null is none.
    pub(super) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Field<'_, 'a>) -> Result<T, BadRequest>,
    ) -> Result<Option<T>, BadRequest> {
        match self.take(name) {
            None | Some(Node::Null) => Ok(None),
            Some(node) => read(Field { path: Path::Member(&self.path, name), node }).map(Some),
        }
    }

    /// Takes a member that an empty value leaves out as well as null does: `""` and `[]`. Not for texts,
    /// whose empty value the normal form folds or keeps, nor for values that are passed through.
    pub(super) fn optional_or_empty<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Field<'_, 'a>) -> Result<T, BadRequest>,
    ) -> Result<Option<T>, BadRequest> {
        self.optional(name, |field| if field.is_empty() { Ok(None) } else { read(field).map(Some) })
            .map(Option::flatten)
    }

    /// Takes a member that there must be; a null is read like any other value.
    pub(super) fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Field<'_, 'a>) -> Result<T, BadRequest>,
    ) -> Result<T, BadRequest> {
        let taken = self.take(name);
        let path = Path::Member(&self.path, name);
        let node = taken.ok_or_else(|| path.missing())?;
        read(Field { path, node })
    }

    /// Takes the `type` that such an object must have.
    pub(super) fn expect_type(&mut self, kind: &'static str) -> Result<(), BadRequest> {
        self.required("type", |field| field.one_of(&[kind], |kind| kind)).map(drop)
    }

    /// Takes these members at their places, with any content, and forgets them.
    pub(super) fn remove(&mut self, names: &[&str]) {
        self.members.retain(|(name, _)| !names.contains(&&**name));
    }

    /// Refuses what was not taken, but for nulls: a member that is null is absent, also one that has no
    /// place here.
    pub(super) fn end(self) -> Result<(), BadRequest> {
        match self.members.iter().find(|(_, node)| *node != Node::Null) {
            None => Ok(()),
            Some((name, _)) => {
                let known = self.requested.iter().take(self.n_requested).copied();
                Err(Path::Member(&self.path, name).unknown(nearest(name, known)))
            }
        }
    }

    /// Keeps what was not taken, as it is; a null is not kept.
    pub(super) fn extras(self) -> BTreeMap<String, Opaque> {
        let members = self.members.into_iter().filter(|(_, node)| *node != Node::Null);
        members.map(|(name, node)| (name.into_owned(), node.to_opaque())).collect()
    }

    /// The same with the nulls. Version 1 of the normal form has those of the body and of an
    /// assistant's turn, and the fold of version 2 leaves them out.
    pub(super) fn extras_with_nulls(self) -> BTreeMap<String, Opaque> {
        let members = self.members.into_iter();
        members.map(|(name, node)| (name.into_owned(), node.to_opaque())).collect()
    }

    fn take(&mut self, name: &'static str) -> Option<Node<'a>> {
        // Remembered also where the member is missing: a mistyped name means one that was not found.
        if let Some(place) = self.requested.get_mut(self.n_requested) {
            *place = name;
            self.n_requested = self.n_requested.saturating_add(1);
        }
        let at = self.members.iter().position(|(other, _)| other == name)?;
        // The order of what is left does not matter: extras are sorted, and `end` refuses whichever it finds.
        Some(self.members.swap_remove(at).1)
    }
}
