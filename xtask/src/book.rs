//! `cargo xtask book`: builds the book and checks every link between its pages and to files of the repository.
//!
//! Links to other hosts are not followed: tests send nothing to the outside.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::installed::Installed;

const SUMMARY: &str = "docs/SUMMARY.md";

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
    }
    if !problems.is_empty() {
        bail!("links:\n  {}", problems.join("\n  "));
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
}

impl Page {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let (mut anchors, mut links, mut heading) = (BTreeSet::new(), Vec::new(), None);
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
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
        Ok(Self { anchors, links })
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
        let page = Page { anchors: ["there".to_owned()].into(), links: Vec::new() };
        // Tests run in the package's folder.
        let pages = BTreeMap::from([(PathBuf::from("Cargo.toml"), page)]);
        let of = |link| broken(Path::new("src/page.md"), link, &pages);
        assert_eq!(of("../Cargo.toml#there"), None);
        assert_eq!(of("https://example.com/#any"), None);
        assert!(of("../Cargo.toml#elsewhere").is_some_and(|problem| problem.contains("no such heading")));
        assert!(of("../Cargo.lock.gone").is_some_and(|problem| problem.contains("no such file")));
    }
}
