//! The calendar sums behind `clock`. Pure: the caller brings the time. Time zones are fixed offsets
//! only, so no zone database is needed and no hour is ever skipped.

use jiff::civil::{Date, DateTime};
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;
use jiff::{Span, Timestamp, Unit};

/// A point in time, for a model to read.
#[derive(Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Moment {
    /// RFC 3339, in the offset that was asked for.
    datetime: String,
    /// Calendar date there.
    date: String,
    /// Time of day there, 24 hours.
    time: String,
    /// Day of the week there, in English.
    weekday: &'static str,
    /// The offset from UTC.
    timezone_offset: String,
    /// Seconds since 1970-01-01T00:00:00Z.
    unix_seconds: i64,
}

/// The answer of `add_duration`.
#[derive(Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Sum {
    /// Where the sum ends, in the form of the start: a date, or a date and time.
    result: String,
    /// Day of the week of the result, in English.
    weekday: &'static str,
}

/// The answer of `days_between`.
#[derive(Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Days {
    /// Whole days from the first date to the second; negative when the second is earlier.
    days: i32,
    /// Of these, the days that are Monday to Friday. The earlier date counts, the later does not.
    weekdays: i32,
    /// Day of the week of the first date.
    from_weekday: &'static str,
    /// Day of the week of the second date.
    to_weekday: &'static str,
}

/// Tells `now` in the given offset, UTC when there is none.
///
/// # Errors
/// When the offset cannot be read.
pub(crate) fn moment(now: Timestamp, offset: Option<&str>) -> Result<Moment, String> {
    let offset = offset.map_or(Ok(Offset::UTC), parse_offset)?;
    let local = offset.to_datetime(now);
    Ok(Moment {
        datetime: format!("{:.0}", now.display_with_offset(offset)),
        date: local.date().to_string(),
        time: local.time().strftime("%H:%M:%S").to_string(),
        weekday: weekday(local.date()),
        timezone_offset: offset_text(offset),
        unix_seconds: now.as_second(),
    })
}

/// Adds `duration` to `start` and answers in the form of `start`.
///
/// # Errors
/// When one of them cannot be read, or the result is outside the years -9999 to 9999.
pub(crate) fn add(start: &str, duration: &str) -> Result<Sum, String> {
    let pieces = parse_start(start)?;
    let span: Span = duration.trim().parse().map_err(|_| {
        format!(
            "`{duration}` is no duration. Send ISO 8601 such as P1DT2H, or plain such as \
             \"2 weeks 3 days\"."
        )
    })?;
    let too_far = |_| format!("`{start}` plus `{duration}` is outside the calendar.");
    let date = pieces.date();
    let Some(time) = pieces.time() else {
        // A bare date stays a date only if the sum is made of whole days.
        if whole_days(&span) {
            let result = date.checked_add(span).map_err(too_far)?;
            return Ok(Sum { result: result.to_string(), weekday: weekday(result) });
        }
        let result = date.at(0, 0, 0, 0).checked_add(span).map_err(too_far)?;
        return Ok(Sum { result: result.to_string(), weekday: weekday(result.date()) });
    };
    let result: DateTime = date.to_datetime(time).checked_add(span).map_err(too_far)?;
    let zone = pieces.to_numeric_offset().map(offset_text).unwrap_or_default();
    Ok(Sum { result: format!("{result}{zone}"), weekday: weekday(result.date()) })
}

/// Counts the days from one date to another.
///
/// # Errors
/// When one of them cannot be read.
pub(crate) fn days_between(from: &str, to: &str) -> Result<Days, String> {
    let (from, to) = (parse_start(from)?.date(), parse_start(to)?.date());
    let days = from
        .until((Unit::Day, to))
        .map_err(|_| "The dates are too far apart.".to_owned())?
        .get_days();
    let (first, last) = if days < 0 { (to, from) } else { (from, to) };
    let weekdays = count_weekdays(first, last, days.abs());
    Ok(Days {
        days,
        weekdays: if days < 0 { -weekdays } else { weekdays },
        from_weekday: weekday(from),
        to_weekday: weekday(to),
    })
}

/// Whole weeks hold five each; at most six days remain to be looked at one by one.
fn count_weekdays(first: Date, last: Date, days: i32) -> i32 {
    let mut weekdays = days / 7 * 5;
    let mut day = last;
    for _ in 0..days % 7 {
        let Ok(before) = day.yesterday() else { break };
        day = before;
        if day >= first && day.weekday().to_monday_zero_offset() < 5 {
            weekdays += 1;
        }
    }
    weekdays
}

fn parse_start(text: &str) -> Result<Pieces<'_>, String> {
    Pieces::parse(text.trim()).map_err(|_| {
        format!("`{text}` is no date. Send one such as 2026-07-28 or 2026-07-28T09:30:00+02:00.")
    })
}

fn parse_offset(text: &str) -> Result<Offset, String> {
    let bad = || format!("`{text}` is no offset from UTC. Send one such as +02:00, -05:30 or Z.");
    let trimmed = text.trim();
    let bare = trimmed.strip_prefix("UTC").or(trimmed.strip_prefix("GMT")).unwrap_or(trimmed);
    if bare.is_empty() || bare.eq_ignore_ascii_case("z") {
        return Ok(Offset::UTC);
    }
    let (sign, digits) = match bare.split_at_checked(1) {
        Some(("+", rest)) => (1, rest),
        Some(("-", rest)) => (-1, rest),
        _ => return Err(bad()),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2).ok_or_else(bad)?,
        None => (digits, "0"),
    };
    let number = |part: &str, max: i32| {
        let all_digits = matches!(part.len(), 1 | 2) && part.bytes().all(|b| b.is_ascii_digit());
        part.parse().ok().filter(|number| all_digits && *number <= max).ok_or_else(bad)
    };
    let (hours, minutes): (i32, i32) = (number(hours, 18)?, number(minutes, 59)?);
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).map_err(|_| bad())
}

fn offset_text(offset: Offset) -> String {
    let seconds = offset.seconds();
    let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

fn whole_days(span: &Span) -> bool {
    let below_an_hour = [
        span.get_minutes(),
        span.get_seconds(),
        span.get_milliseconds(),
        span.get_microseconds(),
        span.get_nanoseconds(),
    ];
    span.get_hours() == 0 && below_an_hour.iter().all(|count| *count == 0)
}

fn weekday(date: Date) -> &'static str {
    const NAMES: [&str; 7] =
        ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    usize::try_from(date.weekday().to_monday_zero_offset())
        .ok()
        .and_then(|day| NAMES.get(day))
        .copied()
        .expect("a weekday is one of seven")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_is_told_in_the_asked_offset() {
        let now: Timestamp = "2026-07-28T22:30:15.5Z".parse().unwrap();
        let moment = moment(now, Some("+02:00")).unwrap();
        assert_eq!(moment.datetime, "2026-07-29T00:30:15+02:00");
        assert_eq!((moment.date.as_str(), moment.time.as_str()), ("2026-07-29", "00:30:15"));
        assert_eq!((moment.weekday, moment.unix_seconds), ("Wednesday", 1_785_277_815));
    }

    #[test]
    fn offsets_are_read_in_their_usual_forms() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(parse_offset(text).ok().map(offset_text).as_deref(), expect, "{text}");
        };
        for utc in ["Z", "z", "UTC", "+00:00", " -0000 "] {
            check(utc, Some("+00:00"));
        }
        check("+2", Some("+02:00"));
        check("UTC+05:45", Some("+05:45"));
        check("-0330", Some("-03:30"));
        check("+14:00", Some("+14:00"));
        for bad in ["2", "+", "+2:", "+99:00", "+01:60", "Europe/Berlin", "+\u{e9}", "+-1:00"] {
            check(bad, None);
        }
    }

    #[test]
    fn sums_keep_the_form_of_the_start() {
        let check = |start: &str, duration: &str, expect: &str| {
            assert_eq!(add(start, duration).unwrap().result, expect, "{start} + {duration}");
        };
        check("2026-01-31", "P1M", "2026-02-28");
        check("2024-01-31", "1 month", "2024-02-29");
        check("2026-07-28", "-P1D", "2026-07-27");
        check("2026-07-28", "36h", "2026-07-29T12:00:00");
        check("2026-07-28T09:30:00+02:00", "2 weeks 3 days", "2026-08-14T09:30:00+02:00");
        check("2026-07-28T09:30:00Z", "PT45M", "2026-07-28T10:15:00+00:00");
        check("2026-07-28 23:59", "90s", "2026-07-29T00:00:30");
    }

    #[test]
    fn bad_input_is_named_with_a_good_example() {
        assert!(add("tomorrow", "P1D").unwrap_err().contains("2026-07-28"));
        assert!(add("2026-07-28", "a while").unwrap_err().contains("P1DT2H"));
        assert!(add("9999-12-31", "P1D").unwrap_err().contains("outside the calendar"));
        assert!(days_between("2026-02-30", "2026-03-01").unwrap_err().contains("2026-02-30"));
    }

    #[test]
    fn days_are_counted_both_ways() {
        let check = |from: &str, to: &str, days: i32, weekdays: i32| {
            let found = days_between(from, to).unwrap();
            assert_eq!((found.days, found.weekdays), (days, weekdays), "{from} to {to}");
        };
        check("2026-07-28", "2026-07-28", 0, 0);
        // Tuesday to the Tuesday after.
        check("2026-07-28", "2026-08-04", 7, 5);
        // Friday to Monday: the Friday counts, the weekend does not.
        check("2026-07-31", "2026-08-03", 3, 1);
        check("2026-08-03", "2026-07-31", -3, -1);
        check("2026-01-01T23:00:00Z", "2027-01-01", 365, 261);
    }
}
