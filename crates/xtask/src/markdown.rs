//! The little of Markdown that the checks read: tables, code spans and headings.

/// Rows of the first table whose header starts with `header`, each with its trimmed cells; `None` without that table.
#[must_use]
pub fn table<'a>(text: &'a str, header: &[&str]) -> Option<Vec<Vec<&'a str>>> {
    let mut lines = text.lines().skip_while(|line| !cells(line).starts_with(header));
    lines.next()?;
    Some(lines.skip(1).map(cells).take_while(|row| !row.is_empty()).collect())
}

/// The cells of a table's row; none for another line.
fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().strip_prefix('|').and_then(|rest| rest.strip_suffix('|'));
    inner.map(|inner| inner.split('|').map(str::trim).collect()).unwrap_or_default()
}

/// What stands between single backticks. Fenced blocks must be taken out before ([`prose`]).
pub fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The text without fenced blocks; line breaks stay.
#[must_use]
pub fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if !fenced && !fence {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

/// The anchors of a document's headings, as GitHub makes them.
pub fn anchors(text: &str) -> impl Iterator<Item = String> {
    let prose = prose(text);
    let headings: Vec<String> =
        prose.lines().filter(|l| l.starts_with('#')).map(|l| anchor(l.trim_start_matches('#').trim())).collect();
    headings.into_iter()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_found_by_its_header_and_ends_with_its_rows() {
        let text = "| x |\n|---|\n| 1 |\n\n| a | b |\n|---|---|\n| `c` | d |\n| e | |\n\nend";
        assert_eq!(table(text, &["a", "b"]), Some(vec![vec!["`c`", "d"], vec!["e", ""]]));
        assert_eq!(table(text, &["b"]), None);
    }

    #[test]
    fn spans_prose_and_anchors() {
        assert_eq!(code_spans("`a` b `c d`").collect::<Vec<_>>(), ["a", "c d"]);
        assert_eq!(prose("a\n```\nb\n```\nc"), "a\n\n\n\nc\n");
        assert_eq!(
            anchors("# The data path\n## P4 Dedup, in *apply*\n").collect::<Vec<_>>(),
            ["the-data-path", "p4-dedup-in-apply"]
        );
    }
}
