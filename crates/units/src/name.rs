//! Names of choices, as users type them.

/// The name of a value in the table of all names of its kind, which has every value.
pub fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, named)| *named == value).expect("the table has every value").0
}
