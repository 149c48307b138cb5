//! A schedule of a `CronJob` → the error of reading it, in the words of the parser that the real server uses.

/// The smallest and largest value of a field, and names for some.
struct Bounds {
    least: u64,
    most: u64,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Bounds; 5] = [
    Bounds { least: 0, most: 59, names: &[] },
    Bounds { least: 0, most: 23, names: &[] },
    Bounds { least: 1, most: 31, names: &[] },
    Bounds { least: 1, most: 12, names: MONTHS },
    Bounds { least: 0, most: 6, names: DAYS },
];
const NICKNAMES: &[&str] = &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Why a schedule cannot be read.
pub(crate) fn problem(schedule: &str) -> Option<String> {
    parse(schedule).err()
}

fn parse(schedule: &str) -> Result<(), String> {
    let mut schedule = schedule;
    if schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=") {
        let Some((zone, rest)) = schedule.split_once(' ') else {
            let length = schedule.find('=').map_or(0, |at| at + 1);
            return Err(format!("invalid schedule format: runtime error: slice bounds out of range [{length}:-1]"));
        };
        let zone = zone.split_once('=').map_or("", |(_, zone)| zone);
        if !is_zone(zone) {
            return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
        }
        schedule = rest.trim();
    }
    if schedule.starts_with('@') {
        return descriptor(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        for range in field.split(',').filter(|range| !range.is_empty()) {
            parse_range(range, bounds)?;
        }
    }
    Ok(())
}

/// Whether a time zone is known.
pub(crate) fn is_zone(name: &str) -> bool {
    matches!(name, "" | "UTC" | "Local") || jiff::tz::TimeZone::get(name).is_ok()
}

fn descriptor(text: &str) -> Result<(), String> {
    match text.strip_prefix("@every ") {
        Some(duration) if portolan_schema::duration::parse(duration).is_none() => {
            Err(format!("failed to parse duration {text}: time: invalid duration {duration:?}"))
        }
        Some(_) => Ok(()),
        None if NICKNAMES.contains(&text) => Ok(()),
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

fn parse_range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => (bounds.least, bounds.most),
        [only] => {
            let value = number_or_name(only, bounds.names)?;
            (value, value)
        }
        [low, high] => (number_or_name(low, bounds.names)?, number_or_name(high, bounds.names)?),
        [low, ..] => {
            number_or_name(low, bounds.names)?;
            return Err(format!("too many hyphens: {text}"));
        }
        [] => return Ok(()),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if ends.len() == 1 {
                end = bounds.most;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    let Bounds { least, most, .. } = bounds;
    if start < *least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {text}"));
    }
    if end > *most {
        return Err(format!("end of range ({end}) above maximum ({most}): {text}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn number_or_name(text: &str, names: &[&str]) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match names.iter().position(|name| *name == lower) {
        // Months count from one, days from zero.
        Some(index) => Ok(index as u64 + u64::from(names.len() == MONTHS.len())),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let parsed: i64 = text
        .parse()
        .map_err(|_| format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"))?;
    u64::try_from(parsed).map_err(|_| format!("negative number ({parsed}) not allowed: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_of_five_fields_and_nicknames_are_read() {
        for schedule in ["* * * * *", "*/5 0-6 1,15 JAN-mar sun", "@daily", "@every 1h30m", "0 0 ? * 6"] {
            assert_eq!(problem(schedule), None, "{schedule}");
        }
    }

    #[test]
    fn the_first_thing_that_is_wrong_is_told() {
        let wrong = [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("@never", "unrecognized descriptor: @never"),
            ("TZ=Mars/Base * * * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
        ];
        for (schedule, wanted) in wrong {
            assert_eq!(problem(schedule).as_deref(), Some(wanted));
        }
    }
}
