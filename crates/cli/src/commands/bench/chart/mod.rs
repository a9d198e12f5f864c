//! Report figures as SVG. SVG is plain text, so no drawing library is needed.

mod axis;
mod figures;
mod panel;
#[cfg(test)]
mod tests;

pub(super) use figures::{Point, of_many, of_one, series};

use crate::code::Code;
use crate::failure::Failure;
use crate::file;
use panel::Panel;
use std::fs::{self, OpenOptions};
use std::path::Path;

/// The width of a figure and the height of each panel, in pixels.
const WIDTH: f64 = 860.0;
const PANEL_HEIGHT: f64 = 330.0;
const TITLE_HEIGHT: f64 = 44.0;

/// A title with panels below it.
#[derive(Debug)]
pub(super) struct Figure {
    title: String,
    panels: Vec<Panel>,
}

impl Figure {
    fn svg(&self) -> String {
        let mut body = String::new();
        let mut top = TITLE_HEIGHT;
        for panel in &self.panels {
            panel.draw(&mut body, top);
            top += PANEL_HEIGHT;
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{top}\" \
             viewBox=\"0 0 {WIDTH} {top}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#1f2937\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
             <text x=\"20\" y=\"30\" font-size=\"18\" font-weight=\"bold\">{}</text>\n{body}</svg>\n",
            escape(&self.title)
        )
    }
}

/// Checks that a figure can be written to this file.
///
/// # Errors
/// `usage` if the name does not end in `.svg` or the file cannot be written.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    let name = path.display();
    if path.extension().is_none_or(|extension| extension != "svg") {
        let message = format!("expected a file name that ends in .svg, but it is {name}");
        return Err(Failure::new(Code::Usage, message)
            .with_hint("the figure is an SVG image; a browser displays it"));
    }
    // Opened for appending: an existing file stays intact if the measurement is aborted.
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(|error| unwritable(path, &error))
}

/// Writes a figure to a file.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn write(path: &Path, figure: &Figure) -> Result<(), Failure> {
    fs::write(path, figure.svg()).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    file::unwritable(&path.display().to_string(), error)
}

/// Escapes text for use between tags.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
