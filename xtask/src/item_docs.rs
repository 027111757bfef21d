//! Item documentation: readable where an editor shows it, beside the item and without the file
//! around it.

/// Complaints about one file: its doc comments and its comment lines.
pub(crate) fn check(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut complaints = Vec::new();
    let mut in_drawing = false;
    for (number, line) in lines.iter().enumerate() {
        let mut say = |what: String| complaints.push(format!("line {}: {what}", number + 1));
        let trimmed = line.trim_start();
        let is_comment = trimmed.starts_with("//");
        in_drawing ^= is_comment && trimmed.trim_start_matches(['/', '!', ' ']).starts_with("```");
        let widest = if in_drawing { WIDEST_DRAWING } else { WIDEST_COMMENT };
        // A table row or an address cannot be wrapped.
        let wraps = !trimmed.contains("http") && !trimmed.contains(" | ");
        if is_comment && wraps && line.chars().count() > widest {
            say(format!("a comment wider than {widest} columns: wrap it"));
        }
        let begins = number == 0 || !lines[number - 1].trim_start().starts_with("///");
        let Some(doc) = trimmed.strip_prefix("/// ").filter(|_| begins) else { continue };
        if let Some(opening) = OPENINGS.iter().find(|opening| doc.starts_with(*opening)) {
            say(format!("'{opening}...' needs the item above to be understood: name the thing"));
        }
    }
    complaints
}

/// Beginnings that refer to something outside the item.
const OPENINGS: [&str; 14] = [
    "It ",
    "Its ",
    "Of ",
    "That ",
    "Their ",
    "They ",
    "Those ",
    "The same",
    "So many",
    "See the head",
    "See the top",
    "As above",
    "Likewise",
    "Whom ",
];

/// As rustfmt wraps code.
const WIDEST_COMMENT: usize = 100;

/// A drawing has columns that must line up, so it cannot be wrapped; wider ones are redrawn.
const WIDEST_DRAWING: usize = 106;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_that_lean_on_others_are_found() {
        let text = "/// Of each attempt.\npub a: u8,\n/// Rounds.\n/// Of each.\npub b: u8,\n";
        assert_eq!(check(text).len(), 1, "{:?}", check(text));
        assert_eq!(check(&format!("// {}", "x".repeat(98))).len(), 1);
        assert_eq!(check(&format!("// {}", "x".repeat(97))), [""; 0]);
    }
}
