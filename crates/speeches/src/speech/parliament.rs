//! The parties, chambers and states of a parliament, with their variants: `ALP`, `Labour` and `Australian Labor Party` are
//! Labor.

use std::collections::BTreeMap;

pub(super) const HOUSE: &str = "House of Representatives";
pub(super) const SENATE: &str = "Senate";

/// One name a line, then its variants. Members of Queensland's LNP sit with the Liberals or the Nationals, and a speech
/// does not tell with which, so LNP stays LNP.
const PARTIES: &str = "\
Liberal: LIB, LP, Liberals, Liberal Party, Liberal Party of Australia
Labor: ALP, Labour, Labor Party, Australian Labor Party
Greens: AG, GRN, Green, The Greens, Australian Greens, The Australian Greens
National: NATS, NAT, NP, NPA, Nationals, The Nationals, National Party, National Party of Australia
Independent: IND
LNP: Liberal National Party, Liberal National Party of Queensland";
const CHAMBERS: &str = "\
House of Representatives: REPS, HoR, House, House of Reps, The House of Representatives
Senate: Sen, The Senate";
const STATES: &str = "\
NSW: New South Wales
VIC: Victoria
QLD: Queensland
WA: Western Australia
SA: South Australia
TAS: Tasmania
ACT: Australian Capital Territory
NT: Northern Territory";

/// The names to which speeches are normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeechRules {
    pub parties: Aliases,
    pub chambers: Aliases,
    pub states: Aliases,
}

/// Those of the Commonwealth of Australia.
impl Default for SpeechRules {
    fn default() -> Self {
        Self {
            parties: Aliases::built_in(PARTIES),
            chambers: Aliases::built_in(CHAMBERS),
            states: Aliases::built_in(STATES),
        }
    }
}

type Table = BTreeMap<String, Vec<String>>;

impl SpeechRules {
    /// A parliament whose names are all in the configuration.
    pub fn unknown() -> Self {
        Self { parties: Aliases::default(), chambers: Aliases::default(), states: Aliases::default() }
    }

    /// Adds names from the configuration.
    #[must_use]
    pub fn with(self, parties: &Table, chambers: &Table, states: &Table) -> Self {
        Self {
            parties: self.parties.with(parties),
            chambers: self.chambers.with(chambers),
            states: self.states.with(states),
        }
    }
}

/// Canonical names, each with its folded variants, including the name itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases(Vec<(String, Vec<String>)>);

impl Aliases {
    /// From lines such as `Labor: ALP, Labour`.
    pub(super) fn built_in(table: &str) -> Self {
        let mut aliases = Self::default();
        for (name, variants) in table.lines().filter_map(|line| line.split_once(": ")) {
            aliases.add(name, variants.split(", "));
        }
        aliases
    }

    /// Adds configured names. A variant belongs to the last name that has it.
    #[must_use]
    pub fn with(mut self, table: &Table) -> Self {
        for (name, variants) in table {
            self.add(name, variants.iter().map(String::as_str));
        }
        self
    }

    fn add<'a>(&mut self, name: &'a str, variants: impl Iterator<Item = &'a str>) {
        let folded: Vec<String> = std::iter::once(name).chain(variants).map(fold).collect();
        for (_, others) in &mut self.0 {
            others.retain(|variant| !folded.contains(variant));
        }
        match self.0.iter_mut().find(|(other, _)| other == name) {
            Some((_, known)) => known.extend(folded),
            None => self.0.push((name.to_owned(), folded)),
        }
        // Removes names that have lost all variants to others.
        self.0.retain(|(_, variants)| !variants.is_empty());
    }

    /// The canonical name for `given`, in any case.
    pub fn canonical(&self, given: &str) -> Option<&str> {
        let folded = fold(given);
        self.0.iter().find(|(_, variants)| variants.contains(&folded)).map(|(name, _)| name.as_str())
    }

    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Without names, every value is valid.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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
        let parties = Aliases::built_in("Labor: ALP, Australian Labor Party\nLNP: Queensland's");
        for given in ["labor", "ALP", "A.L.P.", " australian  Labor\tparty "] {
            assert_eq!(parties.canonical(given), Some("Labor"), "{given}");
        }
        assert_eq!(parties.canonical("lnp"), Some("LNP"));
        assert_eq!(parties.canonical("Pirate"), None);
        assert_eq!(parties.names(), ["Labor", "LNP"]);
    }

    #[test]
    fn configured_names_extend_and_override() {
        let parties = Aliases::built_in("Labor: ALP, Labour").with(&table(&[
            ("Labour", &[]),
            ("Labor", &["LAB"]),
            ("Pirate", &["PPAU"]),
        ]));
        assert_eq!(parties.canonical("labour"), Some("Labour"));
        assert_eq!(parties.canonical("lab"), Some("Labor"));
        assert_eq!(parties.canonical("alp"), Some("Labor"));
        assert_eq!(parties.names(), ["Labor", "Labour", "Pirate"]);
    }
}
