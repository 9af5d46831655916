//! Names of speakers.

/// A speaker, as the transcript describes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Talker {
    /// `Evans, Sen Christopher`
    pub(super) indexed: String,
    /// `Senator CHRIS EVANS`
    pub(super) displayed: String,
    pub(super) id: String,
    pub(super) electorate: String,
    pub(super) party: String,
    pub(super) role: String,
    pub(super) page: String,
    pub(super) time: String,
    pub(super) in_government: String,
    pub(super) first_speech: String,
}

impl Talker {
    /// Stores the value of an element in `<talker>`.
    pub(super) fn keep(&mut self, name: &str, role: &str, value: String) {
        let place = match (name, role) {
            ("name", "display") => &mut self.displayed,
            ("name", _) => &mut self.indexed,
            ("name.id", _) => &mut self.id,
            ("electorate", _) => &mut self.electorate,
            ("party", _) => &mut self.party,
            ("role", _) => &mut self.role,
            ("page.no", _) => &mut self.page,
            ("time.stamp", _) => &mut self.time,
            ("in.gov", _) => &mut self.in_government,
            ("first.speech", _) => &mut self.first_speech,
            _ => return,
        };
        *place = value;
    }

    /// `Christopher Evans`, in reading order.
    pub(super) fn name(&self) -> String {
        if self.indexed.is_empty() {
            self.displayed.clone()
        } else {
            in_reading_order(&self.indexed)
        }
    }

    /// The name shown before the words.
    pub(super) fn label(&self) -> String {
        if self.displayed.is_empty() {
            in_reading_order(&self.indexed)
        } else {
            self.displayed.clone()
        }
    }

    /// Whether a name in the text is this person: `Mr MORRISON:` is `Morrison, Scott, MP`.
    pub(super) fn answers_to(&self, name: &str) -> bool {
        let family = self.indexed.split(',').next().unwrap_or_default().trim().to_lowercase();
        !family.is_empty() && name.to_lowercase().contains(&family)
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        if self.id.is_empty() || other.id.is_empty() {
            return self.indexed == other.indexed;
        }
        self.id.eq_ignore_ascii_case(&other.id)
    }
}

/// `Abbott, Tony, MP` as `Tony Abbott`; `SPEAKER, The` as `The Speaker`.
pub(super) fn in_reading_order(indexed: &str) -> String {
    let mut parts = indexed.split(',').map(str::trim);
    let family = parts.next().unwrap_or_default();
    let given = parts.next().unwrap_or_default();
    let is_office = given.eq_ignore_ascii_case("the");
    let given: Vec<String> = given
        .split_whitespace()
        .filter(|word| is_office || !is_style(word))
        .map(calm)
        .collect();
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
