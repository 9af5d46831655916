//! Canonical names: `ALP`, `Labour` and `Australian Labor Party` are Labor.

use std::collections::BTreeMap;

/// Canonical names with their variants, in the order in which they are offered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases {
    names: Vec<Name>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    name: String,
    /// Folded, including the name itself.
    variants: Vec<String>,
    /// Names that are not offered are valid, but too rare to suggest.
    offered: bool,
}

impl Aliases {
    /// From lines such as `Labor: ALP, Labour`. Names in `rare` are valid, but not offered.
    pub(super) fn built_in(table: &str, rare: &[&str]) -> Self {
        let mut aliases = Self::default();
        for (name, variants) in table.lines().filter_map(|line| line.split_once(": ")) {
            aliases.add(name, &variants.split(", ").collect::<Vec<_>>(), !rare.contains(&name));
        }
        aliases
    }

    /// Adds configured names. A variant belongs to the last name that has it.
    #[must_use]
    pub fn with(mut self, table: &BTreeMap<String, Vec<String>>) -> Self {
        for (name, variants) in table {
            let variants: Vec<&str> = variants.iter().map(String::as_str).collect();
            self.add(name, &variants, true);
        }
        self
    }

    fn add(&mut self, name: &str, variants: &[&str], offered: bool) {
        let folded: Vec<String> = std::iter::once(name).chain(variants.iter().copied()).map(fold).collect();
        for other in &mut self.names {
            other.variants.retain(|variant| !folded.contains(variant));
        }
        match self.names.iter_mut().find(|other| other.name == name) {
            Some(known) => {
                known.variants.extend(folded);
                known.offered |= offered;
            }
            None => self.names.push(Name { name: name.to_owned(), variants: folded, offered }),
        }
        // Removes names that have lost all variants to others.
        self.names.retain(|name| !name.variants.is_empty());
    }

    /// The canonical name for `given`, in any case.
    pub fn canonical(&self, given: &str) -> Option<&str> {
        let folded = fold(given);
        self.names.iter().find(|name| name.variants.contains(&folded)).map(|name| name.name.as_str())
    }

    /// The names to choose from.
    pub fn offered(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter(|name| name.offered).map(|name| name.name.as_str())
    }

    /// Without names, every value is valid.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Lower case, single spaces, no full stops: `A.L.P.` is `alp`.
fn fold(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('.', "").replace('’', "'").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
        rows.iter()
            .map(|(name, variants)| ((*name).to_owned(), variants.iter().map(|v| (*v).to_owned()).collect()))
            .collect()
    }

    #[test]
    fn variants_match_in_any_case_and_spacing() {
        let parties = Aliases::built_in("Labor: ALP, Australian Labor Party\nLNP: Queensland's", &["LNP"]);
        for given in ["labor", "ALP", "A.L.P.", " australian  Labor\tparty "] {
            assert_eq!(parties.canonical(given), Some("Labor"), "{given}");
        }
        assert_eq!(parties.canonical("lnp"), Some("LNP"));
        assert_eq!(parties.canonical("Pirate"), None);
        assert_eq!(parties.offered().collect::<Vec<_>>(), ["Labor"]);
    }

    #[test]
    fn configured_names_extend_and_override() {
        let parties = Aliases::built_in("Labor: ALP, Labour", &[]).with(&table(&[
            ("Labour", &[]),
            ("Labor", &["LAB"]),
            ("Pirate", &["PPAU"]),
        ]));
        assert_eq!(parties.canonical("labour"), Some("Labour"));
        assert_eq!(parties.canonical("lab"), Some("Labor"));
        assert_eq!(parties.canonical("alp"), Some("Labor"));
        assert_eq!(parties.offered().collect::<Vec<_>>(), ["Labor", "Labour", "Pirate"]);
    }
}
