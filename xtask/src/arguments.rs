//! The arguments after a command's name: options and their values.

use std::fmt::Display;
use std::path::PathBuf;
use std::slice::Iter;
use std::str::FromStr;

use anyhow::{Context, Result};

use crate::subcommand::UsageError;

/// The arguments, in order.
pub(crate) struct Arguments<'a> {
    words: Iter<'a, String>,
    /// The option whose value comes next.
    option: &'a str,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(words: &'a [String]) -> Self {
        let words = words.iter();
        Self { words, option: "" }
    }

    /// The next option; `None` at the end.
    pub(crate) fn option(&mut self) -> Option<&'a str> {
        self.option = self.words.next()?;
        Some(self.option)
    }

    /// The option's value.
    ///
    /// # Errors
    /// If the option has no value.
    pub(crate) fn text(&mut self) -> Result<&'a str, UsageError> {
        let value = self.words.next().map(String::as_str);
        value.ok_or_else(|| UsageError(format!("expected a value after {}", self.option)))
    }

    /// The option's value as a number.
    ///
    /// # Errors
    /// If it is not a number.
    pub(crate) fn number<T: FromStr>(&mut self) -> Result<T, UsageError> {
        let value = self.text()?;
        self.parse(value)
    }

    /// The option's value as a number above 0.
    ///
    /// # Errors
    /// If it is not a number, or 0.
    pub(crate) fn positive(&mut self) -> Result<u32, UsageError> {
        match self.number()? {
            0 => Err(self.unexpected("at least 1", 0)),
            number => Ok(number),
        }
    }

    /// The option's value as numbers separated by commas.
    ///
    /// # Errors
    /// If one is not a number.
    pub(crate) fn numbers<T: FromStr>(&mut self) -> Result<Vec<T>, UsageError> {
        let values = self.text()?.split(',');
        values.map(|value| self.parse(value)).collect()
    }

    /// The option's value as an absolute path, relative to the caller's folder: child processes run elsewhere.
    ///
    /// # Errors
    /// If the option has no value, or the path cannot be made absolute.
    pub(crate) fn path(&mut self) -> Result<PathBuf> {
        let value = self.text()?;
        std::path::absolute(value).with_context(|| format!("expected a path, but got `{value}`"))
    }

    /// The items that the option's value names, separated by commas; in the order in which they are known.
    ///
    /// # Errors
    /// If a name is unknown.
    pub(crate) fn some_of<T: Copy>(
        &mut self,
        all: &[T],
        name: fn(T) -> &'static str,
    ) -> Result<Vec<T>, UsageError> {
        let names: Vec<&str> = self.text()?.split(',').collect();
        let known: Vec<&str> = all.iter().map(|it| name(*it)).collect();
        if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
            let (option, known) = (self.option, known.join(", "));
            let message = format!("expected {option} with some of {known}, but got `{unknown}`");
            return Err(UsageError(message));
        }
        let is_named = |it: &T| names.contains(&name(*it));
        Ok(all.iter().copied().filter(is_named).collect())
    }

    /// The error for an unknown option.
    pub(crate) fn unknown(&self) -> UsageError {
        let other = self.option;
        UsageError(format!("expected an option, but got `{other}`; see --help"))
    }

    /// The error for a value that is not what the option takes.
    pub(crate) fn unexpected(&self, wanted: &str, got: impl Display) -> UsageError {
        let option = self.option;
        UsageError(format!("expected {wanted} after {option}, but got {got}"))
    }

    fn parse<T: FromStr>(&self, value: &str) -> Result<T, UsageError> {
        let number = T::from_str(value);
        number.map_err(|_| self.unexpected("a number", format_args!("`{value}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn refusal<T: std::fmt::Debug>(
        text: &str,
        read: impl Fn(&mut Arguments) -> Result<T, UsageError>,
    ) -> String {
        let words = words(text);
        let mut arguments = Arguments::new(&words);
        arguments.option();
        read(&mut arguments).unwrap_err().to_string()
    }

    #[test]
    fn options_come_with_their_values() {
        let words = words("--rounds 3 --defaults --sizes 0,10 --folder /data");
        let mut arguments = Arguments::new(&words);
        assert_eq!(arguments.option(), Some("--rounds"));
        assert_eq!(arguments.positive().unwrap(), 3);
        assert_eq!(arguments.option(), Some("--defaults"));
        assert_eq!(arguments.option(), Some("--sizes"));
        assert_eq!(arguments.numbers::<u64>().unwrap(), [0, 10]);
        assert_eq!(arguments.option(), Some("--folder"));
        assert_eq!(arguments.path().unwrap(), PathBuf::from("/data"));
        assert_eq!(arguments.option(), None);
    }

    #[test]
    fn some_are_picked_in_their_own_order() {
        let words = words("--only mizzen,fore");
        let mut arguments = Arguments::new(&words);
        arguments.option();
        let picked = arguments.some_of(&["fore", "main", "mizzen"], |name| name);
        assert_eq!(picked.unwrap(), ["fore", "mizzen"]);
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_option() {
        assert_eq!(
            refusal("--rounds", |arguments| arguments.positive()),
            "expected a value after --rounds"
        );
        assert_eq!(
            refusal("--rounds 0", |arguments| arguments.positive()),
            "expected at least 1 after --rounds, but got 0"
        );
        assert_eq!(
            refusal("--sizes 1,many", |arguments| arguments.numbers::<u64>()),
            "expected a number after --sizes, but got `many`"
        );
        assert_eq!(
            refusal("--only bow", |arguments| arguments
                .some_of(&["fore"], |name| name)),
            "expected --only with some of fore, but got `bow`"
        );
    }
}
