//! One axis of a panel: maps values to positions.

/// The approximate number of grid lines across a panel.
const TICKS: f64 = 6.0;
/// Up to this many decades, a logarithmic axis has ticks within the decades.
const DECADES_WITH_STEPS: f64 = 3.0;
/// Tolerance for values that differ only in their last digits.
const ALMOST_1: f64 = 1.0 - 1e-9;

/// How tick values are formatted.
pub(super) type Show = fn(f64) -> String;

/// One axis of a panel.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// The label, with the unit.
    pub(super) label: String,
    /// How ticks are formatted.
    pub(super) show: Show,
    scale: Scale,
}

#[derive(Clone, Copy, Debug)]
enum Scale {
    /// From 0 in this many steps.
    Linear { step: f64, steps: i32 },
    /// From one value to another.
    Logarithmic { low: f64, high: f64 },
}

impl Axis {
    /// From 0 to the largest value, in round steps.
    pub(super) fn linear(label: &str, figures: impl Iterator<Item = f64>) -> Self {
        let largest = figures.fold(0.0, f64::max);
        let step = round_up((largest / TICKS).max(1e-9));
        let steps = whole((largest / step).ceil()).max(1);
        Self::new(label, Scale::Linear { step, steps })
    }

    /// From below the smallest positive value to above the largest, by factors.
    pub(super) fn logarithmic(label: &str, figures: impl Iterator<Item = f64> + Clone) -> Self {
        let positive = figures.filter(|figure| *figure > 0.0);
        let smallest = positive.clone().fold(f64::INFINITY, f64::min);
        let largest = positive.fold(0.0, f64::max);
        let (low, high) = if largest > 0.0 {
            (round_down(smallest), round_up(largest))
        } else {
            (1.0, 10.0)
        };
        let high = if high > low { high } else { 10.0 * low };
        Self::new(label, Scale::Logarithmic { low, high })
    }

    /// The same axis with another tick format.
    pub(super) fn shown(self, show: Show) -> Self {
        Self { show, ..self }
    }

    /// The position of a value, from 0 to 1. A value too small for the logarithm is at the start.
    pub(super) fn place(&self, figure: f64) -> f64 {
        match self.scale {
            Scale::Linear { step, steps } => figure / (step * f64::from(steps)),
            Scale::Logarithmic { low, high } => {
                let place = (figure / low).log10() / (high / low).log10();
                place.max(0.0)
            }
        }
    }

    /// The values with a grid line.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear { step, steps } => {
                (0..=steps).map(|number| step * f64::from(number)).collect()
            }
            Scale::Logarithmic { low, high } => {
                let decades = decade_of(low)..=decade_of(high);
                let are_many = (high / low).log10() > DECADES_WITH_STEPS;
                let steps: &[f64] = if are_many { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let decade = |power| steps.iter().map(move |step| step * 10f64.powi(power));
                let ticks = decades.flat_map(decade);
                ticks
                    .filter(|tick| *tick >= low * ALMOST_1 && *tick * ALMOST_1 <= high)
                    .collect()
            }
        }
    }

    fn new(label: &str, scale: Scale) -> Self {
        Self {
            label: label.to_owned(),
            show: plain,
            scale,
        }
    }
}

/// A value without insignificant digits.
pub(super) fn plain(figure: f64) -> String {
    let rounded = (figure * 1e6).round() / 1e6;
    match rounded {
        _ if rounded >= 1e6 => format!("{}M", rounded / 1e6),
        _ if rounded >= 1e4 => format!("{}k", rounded / 1e3),
        _ => rounded.to_string(),
    }
}

/// The next number that is 1, 2 or 5 times a power of ten.
fn round_up(figure: f64) -> f64 {
    let decade = 10f64.powi(decade_of(figure));
    let steps = [1.0, 2.0, 5.0].into_iter().map(|step| step * decade);
    let found = steps.into_iter().find(|step| *step >= figure * ALMOST_1);
    found.unwrap_or(10.0 * decade)
}

/// The previous number that is 1, 2 or 5 times a power of ten.
fn round_down(figure: f64) -> f64 {
    let decade = 10f64.powi(decade_of(figure));
    let steps = [5.0, 2.0, 1.0].into_iter().map(|step| step * decade);
    let found = steps.into_iter().find(|step| *step <= figure / ALMOST_1);
    found.unwrap_or(decade)
}

/// The exponent of a value's leading power of ten.
fn decade_of(figure: f64) -> i32 {
    whole((figure / ALMOST_1).log10().floor())
}

/// A logarithm or a count of ticks: far within the range of its type.
#[allow(clippy::cast_possible_truncation, reason = "a few hundred at most")]
fn whole(figure: f64) -> i32 {
    figure as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(axis.show).collect()
    }

    #[test]
    fn a_linear_axis_has_round_steps_from_zero() {
        let axis = Axis::linear("runs/s", [3.0, 11_500.0].into_iter());
        assert_eq!(
            shown(&axis),
            ["0", "2000", "4000", "6000", "8000", "10k", "12k"]
        );
        assert!((axis.place(6_000.0) - 0.5).abs() < 1e-9);
        assert_eq!(
            shown(&Axis::linear("", [0.3].into_iter()))
                .last()
                .map(String::as_str),
            Some("0.3")
        );
        assert_eq!(shown(&Axis::linear("", std::iter::empty())).len(), 2);
    }

    #[test]
    fn a_logarithmic_axis_goes_by_factors() {
        let axis = Axis::logarithmic("ms", [0.7, 42.0, 0.0].into_iter());
        assert_eq!(shown(&axis), ["0.5", "1", "2", "5", "10", "20", "50"]);
        assert!((axis.place(5.0) - 0.5).abs() < 1e-9);
        assert_eq!(axis.place(0.0), 0.0);
        let axis = Axis::logarithmic("clients", [1.0, 1_000_000.0].into_iter());
        assert_eq!(
            shown(&axis),
            ["1", "10", "100", "1000", "10k", "100k", "1M"]
        );
        let one = Axis::logarithmic("", [10.0].into_iter());
        assert_eq!(shown(&one), ["10", "20", "50", "100"]);
    }
}
