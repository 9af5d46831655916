//! Who may see a document or a source.

use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::context::{CallContext, Principal};

/// Longer lists and names are refused, because an index stores them with every passage.
const MAX_READERS: usize = 200;
const MAX_NAME_BYTES: usize = 128;
/// How a list is printed that everybody, or nobody, is on.
const EVERYBODY: &str = "everybody";
const NOBODY: &str = "nobody";

/// One reader, as the configuration and documents write it: `user:ann` or `group:board`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reader(String);

impl Reader {
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let is_name = |name: &str| {
            name == name.trim()
                && (1..=MAX_NAME_BYTES).contains(&name.len())
                && !name.contains(|c: char| c.is_control() || ",&".contains(c))
        };
        match text.split_once(':') {
            Some(("user" | "group", name)) if is_name(name) => Ok(Self(text.to_owned())),
            _ => Err(format!("`{}` is no reader: write \"user:NAME\" or \"group:NAME\"", crate::wire::clip(text, 80))),
        }
    }
}

/// Who may see something: the callers whom each of these lists names. No list: everybody.
///
/// A source, a folder and a document can each have a list, and each can only narrow the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Written")]
pub struct Readers(Vec<Vec<Reader>>);

/// A list of texts, or one text with commas.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    List(Vec<String>),
    Text(String),
    Other(IgnoredAny),
}

impl TryFrom<Written> for Readers {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let names: Vec<&str> = match &written {
            Written::List(names) => names.iter().map(String::as_str).collect(),
            Written::Text(text) => text.split(',').collect(),
            Written::Other(_) => {
                return Err("is neither a list such as [\"group:board\", \"user:ann\"] nor a text".to_owned());
            }
        };
        if names.len() > MAX_READERS {
            return Err(format!("names more than {MAX_READERS} readers; use a group"));
        }
        let list = names.into_iter().map(Reader::parse).collect::<Result<_, _>>()?;
        Ok(Self::default().and(list))
    }
}

impl Readers {
    pub const EVERYBODY: &'static Self = {
        static EVERYBODY: Readers = Readers(Vec::new());
        &EVERYBODY
    };

    pub fn nobody() -> Self {
        Self(vec![Vec::new()])
    }

    pub fn is_everybody(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of these readers whom `list` names too.
    #[must_use]
    fn and(mut self, mut list: Vec<Reader>) -> Self {
        list.sort();
        list.dedup();
        if let Err(at) = self.0.binary_search(&list) {
            self.0.insert(at, list);
        }
        self
    }

    /// Those who are among `others` too.
    #[must_use]
    pub fn narrowed(self, others: &Self) -> Self {
        others.0.iter().fold(self, |readers, list| readers.and(list.clone()))
    }

    /// Whether these were narrowed by all of `others`.
    pub fn keep_to(&self, others: &Self) -> bool {
        others.0.iter().all(|list| self.0.contains(list))
    }

    pub fn allow(&self, cx: &CallContext) -> bool {
        self.include(&cx.principal, &cx.groups)
    }

    /// Whether a caller in these groups is one of the readers.
    pub fn include(&self, principal: &Principal, groups: &[String]) -> bool {
        let Some(user) = principal.user() else {
            return self.is_everybody();
        };
        // Whoever can read the server's files needs no permission.
        let is_operator = *principal == Principal::Local;
        let names = |reader: &Reader| match reader.0.split_once(':') {
            Some(("user", name)) => name == user.as_str(),
            Some((_, name)) => groups.iter().any(|group| group == name),
            None => false,
        };
        is_operator || self.0.iter().all(|list| list.iter().any(names))
    }

    /// The inverse of [`fmt::Display`]; text of another form names nobody.
    pub fn read(text: &str) -> Self {
        if text == EVERYBODY {
            return Self::default();
        }
        let list = |list: &str| list.split(',').filter_map(|reader| Reader::parse(reader).ok()).collect();
        text.split('&').map(list).fold(Self::default(), Self::and)
    }
}

/// As an index stores it: `group:board,user:ann&group:staff`.
impl fmt::Display for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_everybody() {
            return f.write_str(EVERYBODY);
        }
        let list = |list: &Vec<Reader>| match list.as_slice() {
            [] => NOBODY.to_owned(),
            named => named.iter().map(|reader| reader.0.as_str()).collect::<Vec<_>>().join(","),
        };
        f.write_str(&self.0.iter().map(list).collect::<Vec<_>>().join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::UserId;
    use serde_json::json;
    use std::time::Instant;

    fn caller(name: &str, groups: &[&str]) -> CallContext {
        let principal = match name {
            "" => Principal::Anonymous,
            name => Principal::User(UserId::new(name).expect("a name")),
        };
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        CallContext { groups, ..CallContext::new(principal, Instant::now()) }
    }

    fn list(readers: &[&str]) -> Vec<Reader> {
        readers.iter().map(|reader| Reader::parse(reader).expect("a reader")).collect()
    }

    #[test]
    fn each_list_narrows() {
        let readers = Readers::default().and(list(&["group:board", "user:ann"])).and(list(&["group:staff"]));
        for (caller, may) in [
            (caller("ann", &["staff"]), true),
            (caller("ann", &[]), false),
            (caller("ben", &["board", "staff"]), true),
            (caller("ben", &["board"]), false),
            (caller("board", &["staff"]), false),
            (caller("", &["board", "staff"]), false),
            (CallContext::new(Principal::Local, Instant::now()), true),
        ] {
            assert_eq!(readers.allow(&caller), may, "{:?} {:?}", caller.principal, caller.groups);
            assert_eq!(Readers::read(&readers.to_string()).allow(&caller), may);
            assert!(Readers::default().allow(&caller));
        }
    }

    #[test]
    fn odd_lists_name_nobody() {
        let ann = caller("ann", &["nobody", "everybody", ""]);
        assert!(!Readers::nobody().allow(&ann));
        for text in ["", "nonsense", "nobody", "everybody,user:ben", "everybody&user:ben"] {
            assert!(!Readers::read(text).allow(&ann), "{text}");
        }
        for wrong in ["ann", "user:", "user: ann", "group:a,b", "role:x", "user:a&b", ""] {
            assert!(Reader::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Readers::read(&Readers::nobody().to_string()), Readers::nobody());
        assert_eq!(Readers::read(&Readers::EVERYBODY.to_string()), *Readers::EVERYBODY);
    }

    #[test]
    fn readers_are_written_as_list_or_text() {
        let written = |value: serde_json::Value| serde_json::from_value::<Readers>(value);
        let both = Readers::default().and(list(&["user:ann", "group:board"]));
        assert_eq!(written(json!(["group:board", "user:ann"])).expect("a list"), both);
        assert_eq!(written(json!("user:ann, group:board")).expect("a text"), both);
        assert_eq!(written(json!([])).expect("a list"), Readers::nobody());
        for wrong in [json!(""), json!(null), json!(7), json!(["ann"]), json!([7]), json!({}), json!("user:ann,")] {
            assert!(written(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn narrowed_readers_keep_to_both() {
        let (board, staff) =
            (Readers::default().and(list(&["group:board"])), Readers::default().and(list(&["group:staff"])));
        let both = board.clone().narrowed(&staff);
        assert_eq!(both, staff.clone().narrowed(&board));
        assert!(both.keep_to(&board) && both.keep_to(&staff) && board.keep_to(Readers::EVERYBODY));
        assert!(!board.keep_to(&both) && !Readers::EVERYBODY.keep_to(&board));
    }
}
