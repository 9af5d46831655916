//! Speeches as a page shows them.

use tribune_page::{Neighbour, View};

use super::*;

fn key_of(id: &str) -> &str {
    id.split_once(':').map_or(id, |(_, key)| key)
}

async fn shown(speeches: &Speeches, key: &str) -> tribune_page::Reading {
    let document = speeches.fetch(key).await.expect("held");
    let context = CallContext::new(Principal::Local, Instant::now() + Duration::from_secs(30));
    let view = speeches.source.view(&document, None, &context).await.expect("viewed");
    match view {
        Some(View::Reading(reading)) => *reading,
        other => panic!("{key}: {other:?}"),
    }
}

#[tokio::test]
async fn page_shows_speaker_and_neighbours_of_the_chamber() {
    let speeches = Speeches::new();
    let given = [
        // id, speaker, chamber, date, page, subdebate
        ("h1", "Ann Lee", "House of Representatives", "2024-02-13", 17, "Bees"),
        ("h2", "Bob Roy", "House of Representatives", "2024-02-13", 19, "Bees"),
        ("s1", "Cy Tan", "Senate", "2024-02-13", 3, "Bees"),
        ("h0", "Ann Lee", "House of Representatives", "2024-02-12", 99, "Ants"),
        ("h3", "Ann Lee", "House of Representatives", "2024-03-01", 1, "Wasps"),
    ];
    for (id, speaker, chamber, date, page, subdebate) in given {
        let fields = json!({
            "speech_id": id, "speaker": speaker, "party": "ALP", "chamber": chamber, "date": date, "page": page,
            "debate": "BILLS", "subdebate": subdebate, "text": format!("Words of {id}."),
        });
        speeches.write(&format!("{id}.jsonl"), format!("{fields}\n"));
    }
    speeches.update();

    let second = shown(&speeches, "h1").await;
    assert_eq!(second.byline.as_deref(), Some("Ann Lee"));
    assert_eq!(second.byline_details, ["Labor", "House of Representatives"]);
    assert_eq!(second.reference.as_deref(), Some("House Hansard, 13 February 2024, p. 17"));
    assert_eq!(second.cite_as, "Ann Lee, ‘Bees’, House Hansard, 13 February 2024, p. 17.");
    let key = |neighbour: &Option<Neighbour>| neighbour.as_ref().map(|n| key_of(&n.id).to_owned());
    assert_eq!((key(&second.previous).as_deref(), key(&second.next).as_deref()), (Some("h0"), Some("h2")));
    assert_eq!(second.next.and_then(|next| next.note).as_deref(), Some("Bob Roy, 13 February 2024"));
    let groups: Vec<(&str, Vec<&str>)> = second
        .groups
        .iter()
        .map(|(title, others)| (title.as_str(), others.iter().map(|other| key_of(&other.id)).collect()))
        .collect();
    assert_eq!(groups, [("More by Ann Lee", vec!["h3", "h0"]), ("In the same debate", vec!["h2", "s1"])]);
    let senate = shown(&speeches, "s1").await;
    assert_eq!((senate.previous, senate.next), (None, None), "chambers do not mix");
}

#[tokio::test]
async fn speeches_of_a_sitting_keep_their_order() {
    let speeches = Speeches::new();
    let xml =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/hansard/house.xml")).expect("a sitting");
    speeches.write("house.xml", xml);
    speeches.update();
    let mut at = "house.xml#1".to_owned();
    let mut numbers = vec![1];
    while let Some(next) = shown(&speeches, &at).await.next {
        let back = shown(&speeches, key_of(&next.id)).await.previous.expect("a way back");
        assert_eq!(key_of(&back.id), at);
        at = key_of(&next.id).to_owned();
        numbers.push(at.rsplit('#').next().and_then(|n| n.parse().ok()).expect("a number"));
        assert!(numbers.len() < 100, "{numbers:?}");
    }
    assert!(numbers.len() > 3 && numbers.is_sorted(), "{numbers:?}");
}
