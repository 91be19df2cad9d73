//! `cargo xtask book`: builds the book and checks every link between its pages and to files of the repository, and every
//! path of the repository that a page names.
//!
//! Links to other hosts are not followed: tests send nothing to the outside.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::installed::Installed;

const SUMMARY: &str = "docs/SUMMARY.md";

/// How a path of the repository begins.
const FOLDERS: [&str; 6] = ["crates/", "lab/", "xtask/", "docs/", "tools/", "deploy/"];
/// Pages that tell what was: a file that they name may be gone.
const HISTORY: [&str; 2] = ["docs/adr", "CHANGELOG.md"];

pub(crate) fn run() -> anyhow::Result<()> {
    let mut files = Vec::new();
    for folder in [".", "docs", "docs/adr", "docs/proposals", "docs/reference"] {
        for entry in fs::read_dir(folder).with_context(|| folder.to_owned())? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                files.push(plain(&path));
            }
        }
    }
    let pages: BTreeMap<PathBuf, Page> = files
        .into_iter()
        .map(|path| Ok((path.clone(), Page::read(&path)?)))
        .collect::<anyhow::Result<_>>()?;
    let mut problems = unlisted(&pages);
    for (path, page) in &pages {
        problems.extend(page.links.iter().filter_map(|link| broken(path, link, &pages)));
        if !HISTORY.iter().any(|history| path.starts_with(history)) {
            problems.extend(missing(path, page, Path::exists));
        }
    }
    if !problems.is_empty() {
        bail!("links and paths:\n  {}", problems.join("\n  "));
    }
    Installed::MDBOOK.run(&["build", "docs"])?;
    let links: usize = pages.values().map(|page| page.links.len()).sum();
    println!("book: {} pages, {links} links, none broken", pages.len());
    Ok(())
}

/// What a page offers and what it refers to.
struct Page {
    anchors: BTreeSet<String>,
    links: Vec<String>,
    /// Inline code.
    code: Vec<String>,
}

impl Page {
    fn read(path: &Path) -> anyhow::Result<Self> {
        Ok(Self::parse(&fs::read_to_string(path).with_context(|| path.display().to_string())?))
    }

    fn parse(text: &str) -> Self {
        let (mut anchors, mut links, mut code, mut heading) = (BTreeSet::new(), Vec::new(), Vec::new(), None);
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            if let Event::Code(text) = &event {
                code.push(text.to_string());
            }
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take().map(|text| anchor(&text))),
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    links.push(dest_url.into_string());
                }
                _ => {}
            }
        }
        Self { anchors, links, code }
    }
}

/// The anchor of a heading, as mdbook and code hosts make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|letter| match letter {
        letter if letter.is_alphanumeric() || letter == '_' || letter == '-' => Some(letter),
        letter if letter.is_whitespace() => Some('-'),
        _ => None,
    });
    kept.collect::<String>().to_lowercase()
}

/// Pages of the book that its table of contents does not have.
fn unlisted(pages: &BTreeMap<PathBuf, Page>) -> Vec<String> {
    let summary = pages.get(Path::new(SUMMARY));
    let listed: BTreeSet<PathBuf> = summary
        .into_iter()
        .flat_map(|summary| &summary.links)
        .map(|link| plain(&Path::new("docs").join(link)))
        .collect();
    let in_book = |path: &PathBuf| path.starts_with("docs") && path != Path::new(SUMMARY);
    pages
        .keys()
        .filter(|path| in_book(path) && !listed.contains(*path))
        .map(|path| format!("{} is not in {SUMMARY}", path.display()))
        .collect()
}

fn broken(page: &Path, link: &str, pages: &BTreeMap<PathBuf, Page>) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        file => plain(&page.parent().unwrap_or(Path::new("")).join(file)),
    };
    if !target.exists() {
        return Some(format!("{}: {link}: no such file", page.display()));
    }
    let is_known = pages.get(&target).is_none_or(|page| anchor.is_empty() || page.anchors.contains(anchor));
    (!is_known).then(|| format!("{}: {link}: no such heading", page.display()))
}

/// Paths of the repository that a page names in code and that do not exist.
fn missing<'page>(
    path: &'page Path,
    page: &'page Page,
    exists: impl Fn(&Path) -> bool + 'page,
) -> impl Iterator<Item = String> + 'page {
    let named = page.code.iter().filter_map(|code| named(code));
    let gone = named.filter(move |named| !exists(Path::new(named)));
    gone.map(|named| format!("{}: `{named}`: no such file or folder", path.display()))
}

/// The path that inline code names, without the line or the item behind it. Patterns and commands name none.
fn named(code: &str) -> Option<&str> {
    let is_path = FOLDERS.iter().any(|folder| code.starts_with(folder));
    let is_plain = !code.contains(['<', '*', '{', ' ']);
    (is_path && is_plain).then(|| code.split_once(':').map_or(code, |(path, _)| path))
}

/// The path without `.` and `..`, relative to the root of the repository.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_as_readers_know_them() {
        assert_eq!(anchor("Patience and shares"), "patience-and-shares");
        assert_eq!(anchor("`hangar up`: what it does"), "hangar-up-what-it-does");
    }

    #[test]
    fn a_link_needs_its_file_and_its_heading() {
        let page = Page::parse("# There");
        // Tests run in the package's folder.
        let pages = BTreeMap::from([(PathBuf::from("Cargo.toml"), page)]);
        let of = |link| broken(Path::new("src/page.md"), link, &pages);
        assert_eq!(of("../Cargo.toml#there"), None);
        assert_eq!(of("https://example.com/#any"), None);
        assert!(of("../Cargo.toml#elsewhere").is_some_and(|problem| problem.contains("no such heading")));
        assert!(of("../Cargo.lock.gone").is_some_and(|problem| problem.contains("no such file")));
    }

    #[test]
    fn a_path_in_code_exists() {
        let of = |text: &str| {
            let page = Page::parse(text);
            missing(Path::new("page.md"), &page, |path| path == Path::new("lab/a/src/b.rs"))
                .collect::<Vec<_>>()
        };
        assert_eq!(of("`lab/a/src/b.rs`, `lab/a/src/b.rs:12`, `lab/a/src/b.rs::name`"), Vec::<String>::new());
        assert_eq!(of("| a |\n|---|\n| `crates/a/` |"), ["page.md: `crates/a/`: no such file or folder"]);
        // Patterns, commands, other names, text and blocks.
        let others = "`crates/<a>/b.rs`, `lab/*`, `docs/{a,b}`, `xtask/a b`, `a/src/b.rs`, crates/a\n\n```\ncrates/a\n```\n";
        assert_eq!(of(others), Vec::<String>::new());
    }
}
