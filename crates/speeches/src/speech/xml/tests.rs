use super::*;
use crate::speech::SpeechRules;
use tribune_corpus::format::Record;

#[derive(Default)]
struct Collected {
    records: Vec<Record>,
    faults: Vec<(Option<u64>, bool, String)>,
}

impl Sink for Collected {
    fn record(&mut self, line: Option<u64>, record: Record, warnings: Vec<String>) -> Result<(), Stop> {
        self.records.push(record);
        self.faults.extend(warnings.into_iter().map(|warning| (line, false, warning)));
        Ok(())
    }
    fn fault(&mut self, line: Option<u64>, skipped: bool, problem: String) {
        self.faults.push((line, skipped, problem));
    }
}

fn read(content: &[u8]) -> Collected {
    let file = tempfile::NamedTempFile::new().expect("file");
    std::fs::write(file.path(), content).expect("write");
    let input = Input {
        path: file.path(),
        relative: "day.xml",
        reading: &crate::reading(SpeechRules::default()),
        max_document_bytes: 64 * 1024,
    };
    let mut collected = Collected::default();
    let chambers = SpeechRules::default().chambers;
    assert_eq!(HansardXml { chambers }.read(&input, &mut collected), Ok(()));
    collected
}

fn sitting(inner: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<hansard>\n<session.header><date>2009-08-12</date><chamber>REPS</chamber></session.header>\n<chamber.xscript><debate><debateinfo><title>BILLS</title><page.no>7</page.no></debateinfo>\n{inner}\n</debate></chamber.xscript></hansard>\n"
    )
}

fn talker(name: &str, id: &str) -> String {
    format!(
        "<talker><name role=\"metadata\">{name}, MP</name><name.id>{id}</name.id><electorate>Cook</electorate><party>LP</party></talker>"
    )
}

fn speech(text: &str) -> String {
    let talker = talker("Byron, Ada", "A1");
    sitting(&format!("<speech><talk.start>{talker}</talk.start>{text}</speech>"))
}

fn only(collected: &Collected) -> &Record {
    assert_eq!(collected.records.len(), 1, "{:?}", collected.faults);
    &collected.records[0]
}

#[test]
fn paragraph_markup_and_entities_make_one_text() {
    let read = read(speech("<para>—Tom &amp; Jerry&#x2019;s &mdash; <inline font-style=\"italic\">so<!-- no --></inline>\n  called<br/>it <![CDATA[a < b]]></para><list><item label=\"(a)\"><para>one</para></item></list>").as_bytes());
    let record = only(&read);
    assert_eq!(record.text, "Tom & Jerry’s — so called it a < b\n\n(a) one");
    assert!(read.faults.is_empty(), "{:?}", read.faults);
    assert_eq!(record.key, "day.xml#1");
    assert_eq!(record.title, "BILLS");
    assert_eq!(record.fields["hansard_reference"], "House Hansard, 12 August 2009, p. 7");
    assert_eq!((&record.fields["party"], &record.fields["speaker"]), (&"Liberal".into(), &"Ada Byron".into()));
}

#[test]
fn nested_turn_is_joined_and_question_is_separate() {
    let (ada, ben) = (talker("Byron, Ada", "A1"), talker("Stone, Ben", "B1"));
    let read = read(
        speech(&format!(
            "<para>—First.</para>\
             <interjection><talk.start>{ben}<para>—No!</para></talk.start><para>Never!</para></interjection>\
             <continue><talk.start>{ada}<para>—Second.</para></talk.start></continue>\
             <continue><talk.start>{ben}<para>—Not me.</para></talk.start></continue>\
             <question><talk.start>{ben}<para>—Why?</para></talk.start></question>\
             <para>Third.</para>"
        ))
        .as_bytes(),
    );
    let texts: Vec<(&str, &str)> = read.records.iter().map(|r| (r.key.as_str(), r.text.as_str())).collect();
    assert_eq!(
        texts,
        [
            ("day.xml#2", "Why?"),
            ("day.xml#1", "First.\n\nBen Stone: No!\n\nNever!\n\nSecond.\n\nBen Stone: Not me.\n\nThird."),
        ]
    );
    assert_eq!(read.records[1].fields["interjections"], 2);
}

#[test]
fn marked_names_name_the_speaker() {
    let p = |inner: &str| format!("<p class=\"HPS-Normal\"><span class=\"HPS-Normal\">{inner}</span></p>\n");
    let name = |id: &str, act: &str, name: &str| {
        format!("<a href=\"{id}\" type=\"{act}\">\n  <span class=\"HPS-{act}\">{name}</span>\n</a>")
    };
    let body = [
        // The time is cut in two by the mark, or stands there twice, in real files.
        p(&format!(
            "{} (<span class=\"HPS-Electorate\">Cook</span>—<span class=\"HPS-MinisterialTitles\">Prime Minister</span>) (10<span class=\"HPS-Time\">:01</span>):  <span class=\"HPS-Time\">10:01</span>):  I move.",
            name("a1", "MemberSpeech", "Ms BYRON")
        )),
        p("Leave granted."),
        p(&format!("{} Order!", name("10000", "OfficeContinuation", "The SPEAKER:"))),
        p(&format!("{} Thank you.", name("A1", "MemberContinuation", "Ms BYRON:"))),
        p("<span class=\"HPS-OfficeSpeech\">The CLERK:</span> Bill read."),
        p("<span class=\"HPS-MemberContinuation\">Ms BYRON:</span> Once more."),
        format!(
            "<a href=\"X\" type=\"GeneralIInterjecting\">{}</a>",
            p("<span class=\"HPS-GeneralIInterjecting\">Mr Stone interjecting</span>—")
        ),
    ];
    let read = read(speech(&format!("<talk.text><body>{}</body></talk.text>", body.concat())).as_bytes());
    assert_eq!(
        only(&read).text,
        "I move.\n\nLeave granted.\n\nThe SPEAKER: Order!\n\nThank you.\n\nThe CLERK: Bill read.\n\nOnce more.\n\nMr Stone interjecting—"
    );
    let fields = &only(&read).fields;
    assert_eq!(fields["role"], "Prime Minister");
    assert!(!fields.contains_key("time"), "half a time is none");
}

#[test]
fn divisions_petitions_and_procedure_are_left_out() {
    let inner = format!(
        "<para>Debate resumed.</para><division><division.header><para>The House divided.</para></division.header></division>\
         <speech><talk.start>{}<para>—Yes.</para></talk.start><division><names><name>Byron</name></names></division></speech>",
        talker("Byron, Ada", "A1")
    );
    let read = read(sitting(&inner).as_bytes());
    assert_eq!(only(&read).text, "Yes.");
}

#[test]
fn an_old_encoding_is_read_and_told() {
    let text = speech("<para>Caf\u{e9} \u{93}so\u{94}</para>");
    let bytes: Vec<u8> = text.chars().map(|c| c as u8).collect();
    let read = read(&bytes);
    assert_eq!(only(&read).text, "Café “so”");
    assert!(read.faults[0].2.contains("Windows-1252"), "{:?}", read.faults);
}

#[test]
fn entities_that_a_file_declares_are_never_expanded() {
    let mut bomb = String::from("<!DOCTYPE hansard [<!ENTITY a \"ha\"><!ENTITY x SYSTEM \"file:///etc/passwd\">");
    for n in 1..30 {
        bomb.push_str(&format!("<!ENTITY b{n} \"{}\">", format!("&b{};", n - 1).repeat(10)));
    }
    bomb.push_str("]>");
    let content =
        speech("<para>Before &b29; and &x; after</para>").replacen("<hansard>", &format!("{bomb}<hansard>"), 1);
    let read = read(content.as_bytes());
    assert_eq!(only(&read).text, "Before &b29; and &x; after");
    assert_eq!(read.faults.len(), 1, "told once: {:?}", read.faults);
    assert!(read.faults[0].2.contains("`&b29;`"));
}

#[test]
fn too_deep_or_too_long_is_refused() {
    let deep = read(format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000)).as_bytes());
    assert!(deep.faults[0].2.contains("100 deep"), "{:?}", deep.faults);

    let long = speech(&"<para>word word word</para>\n".repeat(10_000));
    let long = read(long.as_bytes());
    assert!(long.records.is_empty() && long.faults[0].2.contains("larger than one document"), "{:?}", long.faults);
    assert_eq!(long.faults[0].0, Some(5), "where the speech begins");

    let token = read(speech(&format!("<para>{}</para>", "x".repeat(500_000))).as_bytes());
    assert!(token.records.is_empty() && token.faults[0].1, "{:?}", token.faults);
}

#[test]
fn broken_file_is_read_up_to_the_break() {
    let whole = speech("<para>Kept.</para>");
    let at = whole.find("</debate>").expect("an end");
    let cut = read(&whole.as_bytes()[..at]);
    assert_eq!(only(&cut).text, "Kept.");
    let (line, skipped, problem) = &cut.faults[0];
    assert!(line.is_some() && *skipped && problem.contains("<debate> is never closed"), "{problem}");

    let within = read(&whole.as_bytes()[..whole.find("Kept").expect("text")]);
    assert!(within.records.is_empty() && within.faults[0].2.contains("ends in the middle"), "{:?}", within.faults);

    let crossed = read(whole.replace("</debate>", "</debat>").as_bytes());
    assert_eq!(crossed.records.len(), 1);
    assert!(crossed.faults[0].2.contains("not well-formed XML at byte"), "{:?}", crossed.faults);
}

#[test]
fn what_is_no_transcript_is_named() {
    for content in ["<rss><item>x</item></rss>", "", "plain text", "\u{feff}<html></html>"] {
        let read = read(content.as_bytes());
        assert!(read.records.is_empty());
        assert_eq!(read.faults.len(), 1, "{content}: {:?}", read.faults);
        assert!(read.faults[0].1 && read.faults[0].2.contains("not a Hansard transcript"), "{:?}", read.faults);
    }
    let read = read(b"\xff\xfe<\0");
    assert!(read.faults[0].2.contains("is not UTF-8"), "{:?}", read.faults);
}

#[test]
fn empty_speech_is_reported_and_numbers_stay() {
    let ada = talker("Byron, Ada", "A1");
    let read = read(
        sitting(&format!(
            "<speech><talk.start>{ada}</talk.start></speech>\n<speech><talk.start>{ada}<para>—Yes.</para></talk.start></speech>"
        ))
        .as_bytes(),
    );
    assert_eq!(only(&read).key, "day.xml#2");
    assert_eq!(read.faults[0].0, Some(5));
    assert!(read.faults[0].2.contains("the speech has no text"));
}

proptest::proptest! {
    #[test]
    fn no_file_can_make_it_panic(content in "(<(/?(speech|question|talker|p|span class=\"HPS-MemberSpeech\"|continue|name|title|a href=\"x\"))>|[^<]{0,6}|&[a-z]{1,5};|<!\\[CDATA\\[|\\PC){0,40}") {
        read(content.as_bytes());
    }
}
