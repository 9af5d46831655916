//! The parties, chambers and states of a parliament, with their variants.

use std::collections::BTreeMap;

use super::aliases::Aliases;

pub(super) const HOUSE: &str = "House of Representatives";
pub(super) const SENATE: &str = "Senate";

/// The names to which speeches are normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeechRules {
    pub parties: Aliases,
    pub chambers: Aliases,
    pub states: Aliases,
}

impl Default for SpeechRules {
    fn default() -> Self {
        Self::australia()
    }
}

type Table = BTreeMap<String, Vec<String>>;

impl SpeechRules {
    /// The Commonwealth of Australia. Members of Queensland's LNP sit with the Liberals or the Nationals, and a speech
    /// does not tell with which, so LNP stays LNP.
    pub fn australia() -> Self {
        Self {
            parties: Aliases::built_in(
                &[
                    (
                        "Liberal",
                        &["LIB", "LP", "Liberals", "Liberal Party", "Liberal Party of Australia"],
                    ),
                    ("Labor", &["ALP", "Labour", "Labor Party", "Australian Labor Party"]),
                    (
                        "Greens",
                        &[
                            "AG",
                            "GRN",
                            "Green",
                            "The Greens",
                            "Australian Greens",
                            "The Australian Greens",
                        ],
                    ),
                    (
                        "National",
                        &[
                            "NATS",
                            "NAT",
                            "NP",
                            "NPA",
                            "Nationals",
                            "The Nationals",
                            "National Party",
                            "National Party of Australia",
                        ],
                    ),
                    ("Independent", &["IND", "Ind"]),
                ],
                &[(
                    "LNP",
                    &["Liberal National Party", "Liberal National Party of Queensland"],
                )],
            ),
            chambers: Aliases::built_in(
                &[
                    (
                        HOUSE,
                        &["REPS", "HoR", "House", "House of Reps", "The House of Representatives"],
                    ),
                    (SENATE, &["Sen", "The Senate"]),
                ],
                &[],
            ),
            states: Aliases::built_in(
                &[
                    ("NSW", &["New South Wales"]),
                    ("VIC", &["Victoria"]),
                    ("QLD", &["Queensland"]),
                    ("WA", &["Western Australia"]),
                    ("SA", &["South Australia"]),
                    ("TAS", &["Tasmania"]),
                    ("ACT", &["Australian Capital Territory"]),
                    ("NT", &["Northern Territory"]),
                ],
                &[],
            ),
        }
    }

    /// A parliament whose names are all in the configuration.
    pub fn unknown() -> Self {
        Self {
            parties: Aliases::default(),
            chambers: Aliases::default(),
            states: Aliases::default(),
        }
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
