//! The file with the limits of control planes.

use std::path::Path;

use anyhow::Context as _;
use hangar_operator::Limits;

/// The file as it is written, once it is known to be right.
pub(crate) fn read(path: &Path) -> anyhow::Result<(String, Limits)> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the limits {}", path.display()))?;
    let limits =
        Limits::parse(&text).with_context(|| format!("the limits {} cannot be used", path.display()))?;
    Ok((text, limits))
}

/// The limits of the file, or the defaults without one. Priority classes are no setting of the file: whether they exist
/// is known to whoever installed them.
pub(crate) fn or_default(path: Option<&Path>, has_priority_classes: bool) -> anyhow::Result<Limits> {
    let limits = path.map(read).transpose()?.map(|(_, limits)| limits).unwrap_or_default();
    Ok(Limits { has_priority_classes, ..limits })
}
