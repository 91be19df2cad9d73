//! What is empty is left out.

/// The value, unless nothing in it is set.
pub(super) fn filled<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

/// The list, unless it is empty.
pub(super) fn non_empty<T>(list: Option<Vec<T>>) -> Option<Vec<T>> {
    list.filter(|list| !list.is_empty())
}
