//! The parties, chambers and states of a parliament, with their variants.

use std::collections::BTreeMap;

use super::aliases::Aliases;

pub(super) const HOUSE: &str = "House of Representatives";
pub(super) const SENATE: &str = "Senate";

/// One name a line, then its variants. Members of Queensland's LNP sit with the Liberals or the Nationals, and a speech
/// does not tell with which, so LNP stays LNP; it is too rare to be offered.
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

impl Default for SpeechRules {
    fn default() -> Self {
        Self::australia()
    }
}

type Table = BTreeMap<String, Vec<String>>;

impl SpeechRules {
    /// The Commonwealth of Australia.
    pub fn australia() -> Self {
        Self {
            parties: Aliases::built_in(PARTIES, &["LNP"]),
            chambers: Aliases::built_in(CHAMBERS, &[]),
            states: Aliases::built_in(STATES, &[]),
        }
    }

    /// A parliament whose names are all in the configuration.
    pub fn unknown() -> Self {
        let none = Aliases::default;
        Self { parties: none(), chambers: none(), states: none() }
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
