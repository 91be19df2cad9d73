//! Renders the tree as text.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::{Node, Verdict, Waited};

/// The tree as lines. Ages are as of `now`.
pub fn render(node: &Node, now: Timestamp) -> String {
    let mut lines = Vec::new();
    collect(node, "", "", now, &mut lines);
    let width = lines.iter().filter_map(|line| line.1.as_ref().map(|_| line.0.chars().count())).max();
    let width = width.unwrap_or_default();
    let mut text = String::new();
    for (left, right) in lines {
        // Writing to a String cannot fail.
        let _ = match right {
            Some(right) => writeln!(text, "{left:width$}  {right}"),
            None => writeln!(text, "{left}"),
        };
    }
    text
}

type Line = (String, Option<String>);

fn collect(node: &Node, lead: &str, below: &str, now: Timestamp, lines: &mut Vec<Line>) {
    let role = node.role.map(|role| format!("{role} ")).unwrap_or_default();
    let mut right = vec![node.verdict.as_str().to_owned()];
    right.extend(node.facts.iter().cloned());
    if node.verdict != Verdict::Ready {
        right.extend(node.since.map(|since| format!("for {}", age(since, now))));
    }
    lines.push((format!("{lead}{role}{}/{}", node.kind, node.name), Some(right.join(", "))));
    let bar = if node.children.is_empty() { "    " } else { "│   " };
    for wait in &node.waits {
        for (number, line) in wait_lines(wait, now).into_iter().enumerate() {
            let mark = if number == 0 { "! " } else { "  " };
            lines.push((format!("{below}{bar}{mark}{line}"), None));
        }
    }
    let last = node.children.len().saturating_sub(1);
    for (number, child) in node.children.iter().enumerate() {
        let (branch, beside) = if number == last { ("└── ", "    ") } else { ("├── ", "│   ") };
        collect(child, &format!("{below}{branch}"), &format!("{below}{beside}"), now, lines);
    }
}

fn wait_lines(wait: &Waited, now: Timestamp) -> Vec<String> {
    let since = wait.since.map(|since| format!(", for {}", age(since, now))).unwrap_or_default();
    let mut lines: Vec<String> = wait.message.lines().map(str::to_owned).collect();
    if let Some(first) = lines.first_mut() {
        *first = format!("{}: {first}", wait.condition);
    }
    if let Some(last) = lines.last_mut() {
        last.push_str(&since);
    }
    lines
}

/// A length of time as people say it: the two largest units are enough.
pub(super) fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    if days > 0 {
        format!("{days}d{}h", hours % 24)
    } else if hours > 0 {
        format!("{hours}h{}m", minutes % 60)
    } else if minutes > 0 {
        format!("{minutes}m{}s", seconds % 60)
    } else {
        format!("{seconds}s")
    }
}
