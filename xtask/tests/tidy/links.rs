//! Links in documents have existing targets, and the manual's summary names each page.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::project::root;
use crate::tree::{Finding, Source, expect_lines, expect_none, sources};

const SUMMARY: &str = "docs/manual/SUMMARY.md";

#[test]
fn every_relative_link_in_a_document_resolves() {
    expect_none(&sources(&[".md"]), |source| {
        dead_links(source, |path| root().join(path).exists())
    });
}

#[test]
fn every_anchor_in_a_link_is_a_heading() {
    let documents = sources(&[".md"]);
    let headings = |path: &Path| {
        let is_target = |source: &&Source| Path::new(&source.path) == path;
        documents.iter().find(is_target).map(anchors)
    };
    expect_none(&documents, |source| dead_anchors(source, headings));
}

#[test]
fn the_summary_names_every_page_of_the_manual() {
    let pages = sources(&[".md"]).into_iter();
    let pages: Vec<String> = pages
        .map(|source| source.path)
        .filter(|path| path.starts_with("docs/manual/") && path != SUMMARY)
        .collect();
    expect_none(&sources(&["SUMMARY.md"]), |summary| {
        unnamed_pages(summary, &pages)
    });
}

fn unnamed_pages(summary: &Source, pages: &[String]) -> Vec<Finding> {
    let targets = links(summary).into_iter();
    let named: BTreeSet<String> = targets
        .map(|(_, target)| format!("docs/manual/{target}"))
        .collect();
    let unnamed = pages.iter().filter(|page| !named.contains(*page));
    unnamed
        .map(|page| summary.finding(1, format!("expected a line for {page}, but it is missing")))
        .collect()
}

/// Links whose `#part` is not a heading of their target document; `headings` returns those of a
/// document by its path.
fn dead_anchors(
    source: &Source,
    headings: impl Fn(&Path) -> Option<BTreeSet<String>>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, target) in links(source) {
        let Some((path, anchor)) = target.split_once('#').filter(|_| !target.contains("://"))
        else {
            continue;
        };
        let document = if path.is_empty() {
            PathBuf::from(&source.path)
        } else {
            beside(&source.path, path)
        };
        if headings(&document).is_none_or(|headings| !headings.contains(anchor)) {
            findings.push(source.finding(number, format!("`{target}` leads to no heading")));
        }
    }
    findings
}

/// The path of a link's target, for a link in `document`.
fn beside(document: &str, link: &str) -> PathBuf {
    let folder = Path::new(document).parent().expect("a file has a folder");
    let mut path = PathBuf::new();
    for component in folder.join(link).components() {
        match component {
            Component::ParentDir => {
                path.pop();
            }
            component => path.push(component),
        }
    }
    path
}

/// The anchors of a document's headings, as mdBook and GitHub generate them.
fn anchors(source: &Source) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut inside_fence = false;
    for (_, line) in source.lines() {
        inside_fence ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if inside_fence || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let anchor: String = heading.trim().chars().filter(kept).collect();
        anchors.insert(anchor.to_lowercase().replace(' ', "-"));
    }
    anchors
}

fn dead_links(source: &Source, exists: impl Fn(&Path) -> bool) -> Vec<Finding> {
    let folder = Path::new(&source.path)
        .parent()
        .expect("a file has a folder");
    let mut findings = Vec::new();
    for (number, target) in links(source) {
        let path = target.split('#').next().unwrap_or_default();
        let is_elsewhere = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
        if !is_elsewhere && !exists(&folder.join(path)) {
            findings.push(source.finding(
                number,
                format!("the link leads to `{target}`, which does not exist"),
            ));
        }
    }
    findings
}

/// The targets of `[text](target)` and `[name]: target`, outside of code.
fn links(source: &Source) -> Vec<(usize, &str)> {
    let mut inside_fence = false;
    let mut links = Vec::new();
    for (number, line) in source.lines() {
        if line.trim_start().starts_with("```") {
            inside_fence = !inside_fence;
        } else if !inside_fence {
            let targets = inline_targets(line)
                .into_iter()
                .chain(reference_target(line));
            links.extend(targets.map(|target| (number, target)));
        }
    }
    links
}

fn inline_targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    for (start, opening) in line.match_indices("](") {
        let is_code = line[..start].matches('`').count() % 2 == 1;
        let rest = &line[start + opening.len()..];
        if let Some((target, _)) = rest.split_once(')').filter(|_| !is_code) {
            targets.push(without_title(target));
        }
    }
    targets
}

fn reference_target(line: &str) -> Option<&str> {
    let (_, target) = line.strip_prefix('[')?.split_once("]: ")?;
    Some(without_title(target))
}

/// Removes the title of `target "title"` and the brackets of `<target>`.
fn without_title(target: &str) -> &str {
    let target = target.split_whitespace().next().unwrap_or_default();
    target.trim_start_matches('<').trim_end_matches('>')
}

#[test]
fn planted_dead_links_are_found() {
    let text = "\
[here](a.md) and [gone](b.md#part)
[elsewhere](https://example.org/b.md), [below](#part), `[code](b.md)`
![picture](../b.png \"title\")
```
[code](b.md)
```
[name]: <b.md>
";
    let planted = Source::planted("docs/x.md", text);
    let rule = |source: &Source| dead_links(source, |path| path == Path::new("docs/a.md"));
    expect_lines(rule, &planted, &[1, 3, 7]);
}

#[test]
fn planted_dead_anchors_are_found() {
    let text = "\
# A title: `code`

[up](#a-title-code) and [down](#b)
[other](../README.md#here), [none](../README.md#there), [away](https://example.org/#x)
[gone](gone.md#part)
";
    let planted = Source::planted("docs/x.md", text);
    let readme = Source::planted("README.md", "## Here\n");
    let rule = |source: &Source| {
        dead_anchors(source, |path| {
            let documents = [&planted, &readme];
            let found = documents
                .into_iter()
                .find(|source| Path::new(&source.path) == path);
            found.map(anchors)
        })
    };
    expect_lines(rule, &planted, &[3, 4, 5]);
}

#[test]
fn a_planted_page_that_no_line_names_is_found() {
    let planted = Source::planted(SUMMARY, "- [A](a.md)\n");
    let pages = ["docs/manual/a.md", "docs/manual/b.md"].map(str::to_owned);
    expect_lines(|source| unnamed_pages(source, &pages), &planted, &[1]);
}
