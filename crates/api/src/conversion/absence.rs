//! Makes values absent that older versions write as empty and newer versions do not allow.

/// The text, unless it is empty.
pub(crate) fn text(value: Option<String>) -> Option<String> {
    value.filter(|value| !value.is_empty())
}

/// The list, unless it is empty.
pub(crate) fn list<T>(value: Option<Vec<T>>) -> Option<Vec<T>> {
    value.filter(|value| !value.is_empty())
}

/// The number, unless it is below the least that is allowed.
pub(crate) fn at_least<N: PartialOrd + Copy>(least: N, value: Option<N>) -> Option<N> {
    value.filter(|value| *value >= least)
}

/// The port, unless it is none.
pub(crate) fn port(value: Option<i32>) -> Option<i32> {
    value.filter(|value| (1..=65_535).contains(value))
}

/// The value, unless nothing in it is set.
pub(crate) fn set<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}
