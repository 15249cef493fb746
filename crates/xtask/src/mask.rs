//! Rust code with comments and literals blanked out, so that a search finds code only.
//!
//! Not a parser: it knows comments, strings, characters and brackets, which is all that the checks need. The result has
//! the same length as the source, so that offsets hold for both.

use std::ops::Range;

/// The code alone: every byte of a comment, string or character is a space, line breaks stay.
#[must_use]
pub fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => block_comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if starts_raw_string(bytes, at) => raw_string_end(bytes, at).unwrap_or(at),
            b'\'' => character_end(text, at).unwrap_or(at),
            _ => at,
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(out).expect("whole characters are blanked")
}

/// The parts of blanked code that are compiled for tests only: items under `#[cfg(test)]`.
#[must_use]
pub fn tests(code: &str) -> Vec<Range<usize>> {
    const ATTRIBUTE: &str = "#[cfg(test)]";
    let starts = code.match_indices(ATTRIBUTE).map(|(start, _)| start);
    starts.map(|start| start..item_end(code.as_bytes(), start + ATTRIBUTE.len())).collect()
}

/// The number of an offset's line, from 1.
#[must_use]
pub fn line(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().filter(|&&b| b == b'\n').count() + 1
}

/// Offsets at which a word stands by itself: neither neighbour is a letter, digit or underscore.
pub fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + use<'a> {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let next = bytes.get(at + word.len());
        let before = at.checked_sub(1).map(|before| &bytes[before]);
        !before.into_iter().chain(next).any(|&b| is_word(b))
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether the `r` at `at` may open a raw string: `r"…"`, `br"…"` or `cr"…"`, but not the end of a name.
fn starts_raw_string(bytes: &[u8], at: usize) -> bool {
    match bytes[..at] {
        [.., before, b'b' | b'c'] => !is_word(before),
        [.., before] => matches!(before, b'b' | b'c') || !is_word(before),
        [] => true,
    }
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| at + n)
}

fn block_comment_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let hashes = bytes[start + 1..].iter().take_while(|&&b| b == b'#').count();
    let quote = start + 1 + hashes;
    if bytes.get(quote) != Some(&b'"') {
        return None;
    }
    let mut closing = vec![b'"'];
    closing.resize(1 + hashes, b'#');
    let length = bytes[quote + 1..].windows(closing.len()).position(|window| window == closing);
    Some(length.map_or(bytes.len(), |n| quote + 1 + n + closing.len()))
}

/// `None` for a lifetime.
fn character_end(text: &str, start: usize) -> Option<usize> {
    let mut rest = text[start + 1..].char_indices();
    let (_, first) = rest.next()?;
    if first == '\\' {
        // The escaped character may itself be a quote.
        rest.next()?;
        return rest.find(|&(_, c)| c == '\'').map(|(n, _)| start + 1 + n + 1);
    }
    rest.next().filter(|&(_, c)| c == '\'').map(|(n, _)| start + 1 + n + 1)
}

/// Where the item ends that starts at `at`: after its `;` or its block.
fn item_end(bytes: &[u8], mut at: usize) -> usize {
    let (mut brackets, mut braces) = (0u32, 0u32);
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            b';' if brackets == 0 && braces == 0 => return at + 1,
            b'{' => braces += 1,
            b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_stays() {
        let text = concat!(
            "let a = \"x\\\" // no\"; // b\n",
            "/* c /* d */ e */ f('\\'', 'g', &'h i);\n",
            "r#\"j\" k\"# l br\"m\" r#type 'é' n"
        );
        let code = code(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.lines().count(), 3);
        let kept: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(kept, ["let", "a", "=", ";", "f(", ",", ",", "&'h", "i);", "l", "b", "r#type", "n"]);
    }

    #[test]
    fn only_test_items_are_found() {
        let code = "fn a() {} #[cfg(test)] mod t { fn b() { [1; 2]; } } fn c() {} #[cfg(test)] mod d; fn e() {}";
        let found: Vec<&str> = tests(code).into_iter().map(|r| &code[r]).collect();
        assert_eq!(found, ["#[cfg(test)] mod t { fn b() { [1; 2]; } }", "#[cfg(test)] mod d;"]);
    }

    #[test]
    fn words_stand_alone() {
        assert_eq!(words("P1 P10 xP1 P1_ (P1)", "P1").collect::<Vec<_>>(), [0, 16]);
    }

    #[test]
    fn lines_count_from_one() {
        assert_eq!((line("a\nb", 0), line("a\nb", 2)), (1, 2));
    }
}
