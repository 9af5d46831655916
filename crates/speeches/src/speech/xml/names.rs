//! The values of elements, and the names of speakers in them.

use std::collections::BTreeMap;

/// The name as `<name role="display">` shows it: `Senator CHRIS EVANS`. That of `<name>` is `Evans, Sen Christopher`.
pub(super) const DISPLAYED: &str = "name display";

/// Values by the names of their elements.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(pub(super) BTreeMap<String, String>);

impl Values {
    /// Empty if it is not known.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

/// A speaker, by the values in `<talker>`.
impl Values {
    /// `Christopher Evans`, in reading order.
    pub(super) fn full_name(&self) -> String {
        match self.get("name") {
            "" => self.get(DISPLAYED).to_owned(),
            indexed => in_reading_order(indexed),
        }
    }

    /// The name shown before the words.
    pub(super) fn label(&self) -> String {
        match self.get(DISPLAYED) {
            "" => in_reading_order(self.get("name")),
            displayed => displayed.to_owned(),
        }
    }

    /// Whether a name in the text is this person: `Mr MORRISON:` is `Morrison, Scott, MP`.
    pub(super) fn answers_to(&self, name: &str) -> bool {
        let family = self.get("name").split(',').next().unwrap_or_default();
        let family = family.trim().to_lowercase();
        !family.is_empty() && name.to_lowercase().contains(&family)
    }

    pub(super) fn is_same_person(&self, other: &Self) -> bool {
        match (self.get("name.id"), other.get("name.id")) {
            ("", _) | (_, "") => self.get("name") == other.get("name"),
            (one, other) => one.eq_ignore_ascii_case(other),
        }
    }
}

/// `Abbott, Tony, MP` as `Tony Abbott`; `SPEAKER, The` as `The Speaker`.
pub(super) fn in_reading_order(indexed: &str) -> String {
    let mut parts = indexed.split(',').map(str::trim);
    let family = parts.next().unwrap_or_default();
    let given = parts.next().unwrap_or_default();
    let is_office = given.eq_ignore_ascii_case("the");
    let given: Vec<String> = given.split_whitespace().filter(|word| is_office || !is_style(word)).map(calm).collect();
    let family: Vec<String> = family.split_whitespace().map(calm).collect();
    let words: Vec<String> = given.into_iter().chain(family).collect();
    words.join(" ")
}

/// Titles and honorifics.
fn is_style(word: &str) -> bool {
    let word = word.trim_end_matches('.').to_ascii_lowercase();
    matches!(word.as_str(), "sen" | "senator" | "the" | "hon" | "mp" | "dr" | "prof")
}

/// `O'BRIEN` as `O'Brien`; mixed case stays as it is.
fn calm(word: &str) -> String {
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    if letters < 2 || word.chars().any(char::is_lowercase) {
        return word.to_owned();
    }
    let mut calmed = String::with_capacity(word.len());
    let mut begins = true;
    for c in word.chars() {
        if begins {
            calmed.push(c);
        } else {
            calmed.extend(c.to_lowercase());
        }
        begins = !c.is_alphabetic() || calmed == "Mc";
    }
    calmed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_put_in_reading_order() {
        for (indexed, name) in [
            ("Abbott, Tony, MP", "Tony Abbott"),
            ("Marchetti, Dr Odette, MP", "Odette Marchetti"),
            ("Evans, Sen Christopher", "Christopher Evans"),
            ("Wong, Sen the Hon. Penny", "Penny Wong"),
            ("SPEAKER, The", "The Speaker"),
            ("DEPUTY PRESIDENT, The", "The Deputy President"),
            ("MCMILLAN, William", "William McMillan"),
            ("O'BRIEN, Kerry", "Kerry O'Brien"),
            ("SMITH-JONES, Ann", "Ann Smith-Jones"),
            ("Honourable members", "Honourable members"),
            ("", ""),
        ] {
            assert_eq!(in_reading_order(indexed), name);
        }
    }
}
