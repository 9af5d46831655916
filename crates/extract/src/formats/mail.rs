//! One e-mail; its attachments are documents of their own.

use mail_parser::{Address, MessageParser, MimeHeaders, PartType};
use serde_json::Value;

use super::{Reading, html};
use crate::extracted::{Extracted, Problem, Reason, Stop};

/// Recipients named; more are left out.
const MAX_NAMES: usize = 20;

pub(super) fn read(bytes: &[u8], reading: &mut Reading<'_>) -> Result<(), Stop> {
    let Some(message) = MessageParser::default().parse(bytes).filter(|message| !message.headers().is_empty()) else {
        return reading.fail(Problem::new(Reason::Damaged, "it has no headers"));
    };
    // Plain text where there is some, because that is what its author wrote for machines.
    let plain = message.text_bodies().find_map(|part| match &part.body {
        PartType::Text(text) if !text.trim().is_empty() => Some(text.to_string()),
        _ => None,
    });
    let text = plain.or_else(|| {
        let html = message.body_html(0)?;
        html::text(&html).ok()
    });
    let mut fields = serde_json::Map::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            fields.insert(name.to_owned(), Value::String(value));
        }
    };
    add("author", message.from().map(names));
    add("to", message.to().map(names));
    add("cc", message.cc().map(names));
    add("date", message.date().map(mail_parser::DateTime::to_rfc3339));
    add("message_id", message.message_id().map(str::to_owned));
    add("thread", message.thread_name().map(str::to_owned));
    let title = message.subject().map(str::trim).filter(|subject| !subject.is_empty());
    let title = title.map_or_else(|| "(no subject)".to_owned(), str::to_owned);
    let text = text.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| title.clone());
    reading.give(Extracted { title: Some(title), text, fields, ..Extracted::default() })?;
    for (number, part) in message.attachments().enumerate() {
        let named = part.attachment_name().map(|name| name.replace(['/', '\\'], "_"));
        match (&part.body, named) {
            (PartType::Message(inner), name) => {
                let name =
                    name.filter(|name| name.ends_with(".eml")).unwrap_or_else(|| format!("message-{number}.eml"));
                reading.inner(&name, |_| Ok(inner.raw_message().to_vec()))?;
            }
            (_, Some(name)) => reading.inner(&name, |_| Ok(part.contents().to_vec()))?,
            (_, None) => {}
        }
    }
    Ok(())
}

/// `Ann Citizen, ben@example.org`
fn names(address: &Address<'_>) -> String {
    let shown = address.iter().filter_map(|one| one.name.as_deref().or(one.address.as_deref()));
    shown.take(MAX_NAMES).collect::<Vec<_>>().join(", ")
}
