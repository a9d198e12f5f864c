//! A panel: lines between two axes.

use super::axis::Axis;
use super::{PANEL_HEIGHT, WIDTH, escape};
use std::fmt::Write;

/// The area of the lines within the panel.
const LEFT: f64 = 78.0;
const RIGHT: f64 = WIDTH - 30.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = PANEL_HEIGHT - 62.0;
/// The width of a character in the legend.
const NAME_WIDTH: f64 = 7.5;
/// Lines are distinguished by color and then by dashes, which helps readers who see few colors.
const COLORS: [&str; 6] = [
    "#0b6bcb", "#d9480f", "#2b8a3e", "#862e9c", "#946c00", "#495057",
];
const DASHES: [&str; 3] = ["", "7 4", "2 3"];
/// Lines with more points than this have no marks.
const MARKS_MAX: usize = 24;

/// A panel: lines between two axes.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// Its name; empty if there is only one line.
    pub(super) name: String,
    /// Its points, ordered by x.
    pub(super) points: Vec<(f64, f64)>,
}

impl Panel {
    /// Adds the panel to a figure at this height.
    pub(super) fn draw(&self, svg: &mut String, top: f64) {
        push(svg, format_args!("<g transform=\"translate(0 {top})\">"));
        self.draw_grid(svg);
        for (number, line) in self.lines.iter().enumerate() {
            self.draw_line(svg, number, line);
        }
        self.draw_legend(svg);
        svg.push_str("</g>\n");
    }

    fn draw_grid(&self, svg: &mut String) {
        for tick in self.x.ticks() {
            let (x, name) = (self.left(tick), (self.x.show)(tick));
            push(
                svg,
                format_args!("<path d=\"M{x:.1} {TOP}V{BOTTOM}\" stroke=\"#e5e7eb\"/>"),
            );
            let y = BOTTOM + 18.0;
            push(
                svg,
                format_args!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{name}</text>"),
            );
        }
        for tick in self.y.ticks() {
            let (y, name) = (self.height(tick), (self.y.show)(tick));
            push(
                svg,
                format_args!("<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#e5e7eb\"/>"),
            );
            let (x, y) = (LEFT - 8.0, y + 4.0);
            push(
                svg,
                format_args!("<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{name}</text>"),
            );
        }
        push(
            svg,
            format_args!(
                "<path d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\" fill=\"none\" stroke=\"#6b7280\"/>"
            ),
        );
        let (x, y) = ((LEFT + RIGHT) / 2.0, BOTTOM + 40.0);
        let label = escape(&self.x.label);
        push(
            svg,
            format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>"),
        );
        let (y, label) = ((TOP + BOTTOM) / 2.0, escape(&self.y.label));
        push(
            svg,
            format_args!(
                "<text transform=\"translate(18 {y}) rotate(-90)\" text-anchor=\"middle\">{label}</text>"
            ),
        );
    }

    fn draw_line(&self, svg: &mut String, number: usize, line: &Line) {
        let places = line
            .points
            .iter()
            .map(|(x, y)| (self.left(*x), self.height(*y)));
        let path: Vec<String> = places
            .clone()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let stroke = stroke(number);
        push(
            svg,
            format_args!(
                "<polyline points=\"{}\" fill=\"none\" {stroke}/>",
                path.join(" ")
            ),
        );
        if line.points.len() <= MARKS_MAX {
            let color = color(number);
            for (x, y) in places {
                push(
                    svg,
                    format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>"),
                );
            }
        }
    }

    fn draw_legend(&self, svg: &mut String) {
        let mut x = LEFT;
        for (number, line) in self.lines.iter().enumerate() {
            if line.name.is_empty() {
                continue;
            }
            let (stroke, name) = (stroke(number), escape(&line.name));
            push(svg, format_args!("<path d=\"M{x} 18h24\" {stroke}/>"));
            x += 30.0;
            push(svg, format_args!("<text x=\"{x}\" y=\"22\">{name}</text>"));
            let characters = u32::try_from(line.name.chars().count()).unwrap_or(u32::MAX);
            x += f64::from(characters) * NAME_WIDTH + 18.0;
        }
    }

    fn left(&self, figure: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * self.x.place(figure)
    }

    fn height(&self, figure: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * self.y.place(figure)
    }
}

fn color(number: usize) -> &'static str {
    COLORS[number % COLORS.len()]
}

fn stroke(number: usize) -> String {
    let dashes = DASHES[number / COLORS.len() % DASHES.len()];
    format!(
        "stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"",
        color(number)
    )
}

fn push(svg: &mut String, element: std::fmt::Arguments<'_>) {
    writeln!(svg, "{element}").expect("a string takes any text");
}
