//! Objects that nest too deeply. Controllers read some hundred levels, API servers ten thousand: an object between the
//! two could be stored and then only be called unreadable, so it is refused.

use std::fmt::Write as _;

use serde_json::Value;

use super::FieldError;

/// Below what a controller can read. Nothing that makes sense comes near.
const MOST_LEVELS: usize = 100;
/// So many names lead to the place; the rest of the way would fill the answer.
const NAMED_LEVELS: usize = 6;

/// One step into an object or a list.
enum Segment<'object> {
    Field(&'object str),
    Entry(usize),
}

type Inner<'object> = Box<dyn Iterator<Item = (Segment<'object>, &'object Value)> + 'object>;

/// The error about the first field that nests too deeply. managedFields, which no controller reads, do not count.
pub(super) fn error(object: &Value) -> Option<FieldError> {
    // Not by recursion: the rule must hold whatever the stack is.
    let (mut open, mut path) = (vec![inner(object)], Vec::new());
    while let Some(last) = open.last_mut() {
        match last.next() {
            None => {
                open.pop();
                path.pop();
            }
            Some((Segment::Field("managedFields"), _)) if path.len() == 1 => {}
            Some((segment, value)) if value.is_object() || value.is_array() => {
                path.push(segment);
                if open.len() == MOST_LEVELS {
                    let why =
                        format!("nested more than {MOST_LEVELS} levels deep, which no controller reads");
                    return Some(FieldError::forbidden(field(&path), why));
                }
                open.push(inner(value));
            }
            Some(_) => {}
        }
    }
    None
}

fn inner(value: &Value) -> Inner<'_> {
    match value {
        Value::Object(fields) => Box::new(fields.iter().map(|(name, value)| (Segment::Field(name), value))),
        Value::Array(entries) => {
            Box::new(entries.iter().enumerate().map(|(index, value)| (Segment::Entry(index), value)))
        }
        _ => Box::new(std::iter::empty()),
    }
}

fn field(path: &[Segment<'_>]) -> String {
    let mut field = String::new();
    for segment in path.iter().take(NAMED_LEVELS) {
        // Writing into a String cannot fail.
        let _ = match segment {
            Segment::Field(name) if field.is_empty() => write!(field, "{name}"),
            Segment::Field(name) => write!(field, ".{name}"),
            Segment::Entry(index) => write!(field, "[{index}]"),
        };
    }
    field
}
