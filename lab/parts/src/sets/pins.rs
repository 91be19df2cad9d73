//! Reads the few things we need out of `go.mod` and `go.sum`. Both formats are line based, so no parser crate.

/// The version in the `go` line, "0" if there is none.
pub(super) fn go_line(go_mod: &'static str) -> &'static str {
    go_mod.lines().find_map(|line| line.strip_prefix("go ")).map_or("0", str::trim)
}

/// The version required for a module, whether on a line of its own or in a block.
pub(super) fn required_version(go_mod: &'static str, module: &str) -> Option<&'static str> {
    go_mod.lines().find_map(|line| {
        let line = line.trim();
        let mut words = line.strip_prefix("require ").unwrap_or(line).split_whitespace();
        let found = words.next()? == module;
        let version = words.next()?;
        // A `replace` line has an arrow in second place.
        (found && version.starts_with('v')).then_some(version)
    })
}

/// The `replace` lines as (module, replacement, version).
#[cfg(test)]
pub(super) fn replacements(go_mod: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    go_mod.lines().filter_map(|line| {
        let line = line.trim();
        let (module, replacement) = line.strip_prefix("replace ").unwrap_or(line).split_once(" => ")?;
        let mut words = replacement.split_whitespace();
        Some((module.split_whitespace().next()?, words.next()?, words.next().unwrap_or_default()))
    })
}

/// The `tool` packages.
#[cfg(test)]
pub(super) fn tools(go_mod: &str) -> Vec<&str> {
    let mut tools = Vec::new();
    let mut in_block = false;
    for line in go_mod.lines().map(str::trim) {
        match line {
            "tool (" => in_block = true,
            ")" => in_block = false,
            _ if in_block => tools.push(line),
            _ => tools.extend(line.strip_prefix("tool ")),
        }
    }
    tools
}

/// The hash of a module's content (not of its `go.mod`).
pub(super) fn sum(go_sum: &'static str, module: &str, version: &str) -> Option<&'static str> {
    go_sum.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == module && words.next()? == version).then(|| words.next())?
    })
}
