//! A run as one page: a lane per host, time from left to right.

use super::{Event, History, What};
use std::fmt::Write;

const PAGE: &str = include_str!("run.html");

impl History {
    /// The page; `title` names the run.
    #[must_use]
    pub fn html(&self, title: &str) -> String {
        let mut data = String::from("{");
        for (number, (host, events)) in self.by_host().iter().enumerate() {
            if number > 0 {
                data.push(',');
            }
            text(&mut data, host);
            data.push_str(":[");
            for (number, event) in events.iter().enumerate() {
                if number > 0 {
                    data.push(',');
                }
                row(&mut data, event);
            }
            data.push(']');
        }
        data.push('}');
        let mut name = String::new();
        text(&mut name, title);
        PAGE.replace("/*TITLE*/\"\"", &name).replace("/*EVENTS*/{}", &data)
    }
}

/// An event as `[milliseconds, kind, text, number, number]`.
fn row(data: &mut String, event: &Event) {
    let (kind, words, numbers) = match &event.what {
        What::Up => ("up", String::new(), [0, 0]),
        What::Down { why } => ("down", why.clone(), [0, 0]),
        What::Fault { name } => ("fault", name.clone(), [0, 0]),
        What::Healed { name } => ("healed", name.clone(), [0, 0]),
        What::Leads { group, term } => ("leads", String::new(), [u64::from(*group), *term]),
        What::Reached { point } => ("reached", (*point).to_owned(), [0, 0]),
        What::Clocks { ended, acked } => ("clocks", String::new(), [*ended, *acked]),
        What::Unknown { clocks } => ("unknown", String::new(), [*clocks, 0]),
        What::Broken { message } => ("broken", message.clone(), [0, 0]),
    };
    let millis = event.at.as_secs_f64() * 1000.0;
    // Writing into a string cannot fail.
    let _ = write!(data, "[{millis:.3},");
    text(data, kind);
    data.push(',');
    text(data, &words);
    let _ = write!(data, ",{},{}]", numbers[0], numbers[1]);
}

/// A string literal that is safe inside a script element.
fn text(data: &mut String, words: &str) {
    data.push('"');
    for letter in words.chars() {
        match letter {
            '"' | '\\' | '<' | '>' | '&' | '\u{0}'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(data, "\\u{:04x}", u32::from(letter));
            }
            other => data.push(other),
        }
    }
    data.push('"');
}
