//! From glyphs at places to lines of words.

use hayro_cmap::BfString;
use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::{BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, SoftMask};
use kurbo::{BezPath, Point};
use unicode_normalization::char::compose;

/// Parts of an em: a gap that is a space, a step that is a new line, and a jump to another column.
const SPACE: f64 = 0.15;
const LINE_STEP: f64 = 0.5;
const JUMP: f64 = 3.0;
/// Glyphs of one page; more are left out.
const MAX_GLYPHS: usize = 500_000;

/// One glyph with its text, where it stands, and how wide and how high it is.
#[derive(Clone)]
struct Mark {
    text: String,
    x: f64,
    y: f64,
    width: f64,
    em: f64,
}

/// The glyphs of a page, in the order in which they are drawn.
#[derive(Default)]
pub(super) struct Page(Vec<Mark>);

impl Device<'_> for Page {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, '_>, properties: DrawProps<'_>, _: &DrawMode) {
        for glyph in run.glyphs() {
            if self.0.len() >= MAX_GLYPHS {
                return;
            }
            let known = glyph.as_unicode().map(|text| match text {
                BfString::Char(c) => c.to_string(),
                BfString::String(text) => text.to_string(),
            });
            let known = known.filter(|text| !text.chars().all(is_unreadable));
            let by_code = || matches!(&**glyph, Glyph::Type3(_)).then(|| of_code(glyph.char_code())).flatten();
            let Some(text) = known.or_else(by_code) else { continue };
            let transform = properties.transform * glyph.transform();
            let at = transform * Point::ZERO;
            let [_, _, across, up, _, _] = transform.as_coeffs();
            let advance = match &**glyph {
                Glyph::Outline(glyph) => glyph.advance_width(),
                Glyph::Type3(glyph) => glyph.advance_width(),
            };
            let end = transform * Point::new(advance.unwrap_or(500.0).into(), 0.0);
            // Glyphs are 1000 units high.
            self.0.push(Mark { text, x: at.x, y: at.y, width: end.x - at.x, em: (across.hypot(up) * 1000.0).max(1.0) });
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'_>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'_>>, _: BlendMode) {}
    fn draw_image(&mut self, _: Image<'_, '_>, _: ImageDrawProps<'_>) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

fn is_unreadable(c: char) -> bool {
    c == '\u{fffd}' || c == '\0' || ('\u{e000}'..='\u{f8ff}').contains(&c)
}

/// Fonts made of bitmaps name no characters, only TeX's codes, which are ASCII for letters.
fn of_code(code: u32) -> Option<String> {
    let ligature = match code {
        11 => "ff",
        12 => "fi",
        13 => "fl",
        14 => "ffi",
        15 => "ffl",
        0x20..=0x7e | 0xa1..=0xff => return char::from_u32(code).map(String::from),
        _ => return None,
    };
    Some(ligature.to_owned())
}

impl Page {
    /// Lines of words.
    pub(super) fn text(self) -> String {
        let mut text = String::new();
        let mut line: Vec<Mark> = Vec::new();
        for mark in with_accents(self.0) {
            if let Some(last) = line.last() {
                let is_below = (mark.y - last.y).abs() > last.em * LINE_STEP;
                if is_below || gap(last, &mark) > last.em * JUMP {
                    let goes_on = mark.x < last.x && mark.text.starts_with(char::is_lowercase);
                    push_line(&mut text, &line, goes_on);
                    line.clear();
                }
            }
            line.push(mark);
        }
        push_line(&mut text, &line, false);
        text
    }
}

/// The distance between two boxes on a line, whichever is on the left.
fn gap(a: &Mark, b: &Mark) -> f64 {
    (b.x - (a.x + a.width)).max(a.x - (b.x + b.width))
}

/// Adds a line. A word that is hyphenated at its end loses the hyphen if the next line goes on with it.
fn push_line(text: &mut String, line: &[Mark], goes_on: bool) {
    let mut shown = String::new();
    let mut last: Option<&Mark> = None;
    // Right-to-left text may be drawn from the left, as it looks.
    let ordered = logical(line);
    for mark in &ordered {
        if let Some(last) = last
            && gap(last, mark) > last.em * SPACE
            && !shown.ends_with(' ')
            && mark.text != " "
        {
            shown.push(' ');
        }
        shown.push_str(&mark.text);
        last = Some(mark);
    }
    text.push_str(shown.trim());
    let mut ending = text.chars().rev();
    let is_hyphen = ending.next().is_some_and(|c| matches!(c, '-' | '\u{ad}' | '\u{2010}'));
    if goes_on && is_hyphen && ending.next().is_some_and(char::is_alphabetic) {
        text.pop();
    } else if !text.is_empty() {
        text.push('\n');
    }
}

/// The marks in the order in which they are read.
fn logical(line: &[Mark]) -> Vec<&Mark> {
    let is_rtl = |mark: &Mark| {
        mark.text
            .chars()
            .any(|c| matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}'))
    };
    let rtl = line.iter().filter(|mark| is_rtl(mark)).count();
    let leftwards = line.windows(2).filter(|pair| pair[1].x < pair[0].x).count();
    if rtl * 2 <= line.len() || leftwards * 2 > line.len() {
        return line.iter().collect();
    }
    let mut ordered: Vec<&Mark> = line.iter().rev().collect();
    // Numbers and foreign words keep their direction.
    let is_ltr = |mark: &&Mark| mark.text.chars().all(|c| c.is_ascii_alphanumeric());
    ordered.chunk_by_mut(|a, b| is_ltr(a) && is_ltr(b)).for_each(<[&Mark]>::reverse);
    ordered
}

/// The combining form of an accent that stands alone.
fn combining(text: &str) -> Option<char> {
    let combining = match text {
        "`" | "\u{2cb}" => '\u{300}',
        "\u{b4}" | "\u{2ca}" => '\u{301}',
        "^" | "\u{2c6}" => '\u{302}',
        "~" | "\u{2dc}" => '\u{303}',
        "\u{af}" => '\u{304}',
        "\u{2d8}" => '\u{306}',
        "\u{2d9}" => '\u{307}',
        "\u{a8}" => '\u{308}',
        "\u{2da}" | "\u{b0}" => '\u{30a}',
        "\u{2dd}" => '\u{30b}',
        "\u{2c7}" => '\u{30c}',
        "\u{b8}" => '\u{327}',
        "\u{2db}" => '\u{328}',
        _ => return None,
    };
    Some(combining)
}

/// Joins accents that are drawn over letters with them, as TeX sets them.
fn with_accents(marks: Vec<Mark>) -> Vec<Mark> {
    let mut joined: Vec<Mark> = Vec::with_capacity(marks.len());
    for mark in marks {
        match joined.last_mut() {
            Some(last) if let Some(letter) = accented(last, &mark) => *last = letter,
            _ => joined.push(mark),
        }
    }
    joined
}

fn accented(first: &Mark, second: &Mark) -> Option<Mark> {
    let middle = |mark: &Mark| mark.x + mark.width / 2.0;
    let is_over = (middle(second) - middle(first)).abs() < 0.35 * first.width.max(second.width)
        && (second.y - first.y).abs() < first.em;
    let (base, accent) = match (combining(&first.text), combining(&second.text)) {
        _ if !is_over => return None,
        (Some(accent), None) => (second, accent),
        (None, Some(accent)) => (first, accent),
        _ => return None,
    };
    let mut letters = base.text.chars();
    let letter = letters.next().filter(|c| c.is_alphabetic() && letters.next().is_none())?;
    let letter = match letter {
        'ı' => 'i',
        'ȷ' => 'j',
        letter => letter,
    };
    Some(Mark { text: compose(letter, accent)?.to_string(), ..base.clone() })
}
