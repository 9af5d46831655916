//! Who may see a document.

use std::fmt;

use crate::context::{CallContext, Principal};

/// One reader, as the configuration and documents write it: `user:ann` or `group:board`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reader(String);

impl Reader {
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let is_name = |name: &str| !name.is_empty() && !name.contains(|c: char| c.is_control() || ",&".contains(c));
        match text.split_once(':') {
            Some(("user" | "group", name)) if is_name(name) => Ok(Self(text.to_owned())),
            _ => Err(format!("`{text}` is no reader: write \"user:NAME\" or \"group:NAME\"")),
        }
    }
}

/// Who may see something: the callers whom each of these lists names. No list: everybody.
///
/// A source, a folder and a document can each have a list, and each can only narrow the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Readers(Vec<Vec<Reader>>);

impl Readers {
    pub fn is_everybody(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of these readers whom `list` names too.
    #[must_use]
    pub fn and(mut self, mut list: Vec<Reader>) -> Self {
        list.sort();
        list.dedup();
        if !self.0.contains(&list) {
            self.0.push(list);
        }
        self
    }

    pub fn allow(&self, cx: &CallContext) -> bool {
        let Some(user) = cx.principal.user() else {
            return self.is_everybody();
        };
        // Whoever can read the server's files needs no permission.
        let is_operator = cx.principal == Principal::Local;
        let names = |reader: &Reader| match reader.0.split_once(':') {
            Some(("user", name)) => name == user.as_str(),
            Some((_, name)) => cx.groups.iter().any(|group| group == name),
            None => false,
        };
        is_operator || self.0.iter().all(|list| list.iter().any(names))
    }

    /// The inverse of [`fmt::Display`]; text of another form names nobody.
    pub fn read(text: &str) -> Self {
        let lists = text.split('&').filter(|list| !list.is_empty());
        Self(lists.map(|list| list.split(',').map(|reader| Reader(reader.to_owned())).collect()).collect())
    }
}

/// As an index stores it: `group:board,user:ann&group:staff`; empty for everybody.
impl fmt::Display for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |list: &Vec<Reader>| list.iter().map(|reader| reader.0.as_str()).collect::<Vec<_>>().join(",");
        // An empty list names nobody, and must not read back as everybody.
        let lists: Vec<String> =
            self.0.iter().map(|readers| if readers.is_empty() { "nobody".to_owned() } else { list(readers) }).collect();
        f.write_str(&lists.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::UserId;
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
        let ann = caller("ann", &["nobody", ""]);
        assert!(!Readers::default().and(Vec::new()).allow(&ann));
        assert!(!Readers::read(&Readers::default().and(Vec::new()).to_string()).allow(&ann));
        assert!(!Readers::read("nonsense").allow(&ann));
        for wrong in ["ann", "user:", "group:a,b", "role:x", "user:a&b", ""] {
            assert!(Reader::parse(wrong).is_err(), "{wrong}");
        }
    }
}
