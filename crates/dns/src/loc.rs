//! LOC records (RFC 1876): degrees, minutes and seconds, metres. Kept to a thousandth of a second and a centimetre.

use serde_json::{Value, json};

use crate::data::DataParts;

/// A place on Earth.
#[derive(Clone, Debug, PartialEq)]
pub struct Location {
    latitude: Angle,
    longitude: Angle,
    altitude: f64,
    size: f64,
    precision_horizontal: f64,
    precision_vertical: f64,
}

/// How far from the equator or the meridian.
#[derive(Clone, Debug, PartialEq)]
struct Angle {
    degrees: u8,
    minutes: u8,
    seconds: f64,
    direction: char,
}

/// What RFC 1876 §3 takes where the text says nothing: a metre wide, known to 10 km and 10 m.
const DEFAULTS: [f64; 4] = [0.0, 1.0, 10_000.0, 10.0];

impl Location {
    /// Reads the parts by their names.
    pub fn read(parts: &impl DataParts) -> Option<Self> {
        let metres = |name: &str, default: f64| match parts.text(name).filter(|text| !text.is_empty()) {
            Some(_) => parts.number(name).map(|metres| rounded(metres, 100.0)),
            None => Some(default),
        };
        let [altitude, size, horizontal, vertical] = DEFAULTS;
        Some(Self {
            latitude: Angle::read(parts, "lat", ['N', 'S'], 90)?,
            longitude: Angle::read(parts, "long", ['E', 'W'], 180)?,
            altitude: metres("altitude", altitude)?,
            size: metres("size", size)?,
            precision_horizontal: metres("precision_horz", horizontal)?,
            precision_vertical: metres("precision_vert", vertical)?,
        })
    }

    /// Reads `52 22 23.0 N 4 53 32.0 E -2m 1m 10000m 10m`, of which minutes, seconds and the last three may be missing.
    pub fn read_text(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace().skip_while(|word| ["IN", "LOC"].contains(word)).peekable();
        let latitude = Angle::read_words(&mut words, ['N', 'S'], 90)?;
        let longitude = Angle::read_words(&mut words, ['E', 'W'], 180)?;
        let mut metres = |default: f64| match words.next() {
            Some(word) => word.trim_end_matches('m').parse().ok().map(|metres| rounded(metres, 100.0)),
            None => Some(default),
        };
        let [altitude, size, horizontal, vertical] = DEFAULTS;
        Some(Self {
            latitude,
            longitude,
            altitude: metres(altitude)?,
            size: metres(size)?,
            precision_horizontal: metres(horizontal)?,
            precision_vertical: metres(vertical)?,
        })
    }

    /// The parts by their names.
    pub fn to_json(&self) -> Value {
        json!({
            "lat_degrees": self.latitude.degrees,
            "lat_minutes": self.latitude.minutes,
            "lat_seconds": self.latitude.seconds,
            "lat_direction": self.latitude.direction,
            "long_degrees": self.longitude.degrees,
            "long_minutes": self.longitude.minutes,
            "long_seconds": self.longitude.seconds,
            "long_direction": self.longitude.direction,
            "altitude": self.altitude,
            "size": self.size,
            "precision_horz": self.precision_horizontal,
            "precision_vert": self.precision_vertical,
        })
    }

    /// The place as zone files have it.
    pub fn to_text(&self) -> String {
        let (latitude, longitude) = (self.latitude.to_text(), self.longitude.to_text());
        let Self { altitude, size, precision_horizontal, precision_vertical, .. } = self;
        format!("{latitude} {longitude} {altitude}m {size}m {precision_horizontal}m {precision_vertical}m")
    }
}

impl Angle {
    fn read(parts: &impl DataParts, prefix: &str, directions: [char; 2], limit: u8) -> Option<Self> {
        let number = |name: &str| match parts.text(&format!("{prefix}_{name}")).filter(|text| !text.is_empty()) {
            Some(_) => parts.number(&format!("{prefix}_{name}")),
            None => Some(0.0),
        };
        let direction = parts.text(&format!("{prefix}_direction"))?;
        Self::checked(number("degrees")?, number("minutes")?, number("seconds")?, &direction, directions, limit)
    }

    fn read_words<'a>(
        words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
        directions: [char; 2],
        limit: u8,
    ) -> Option<Self> {
        let mut numbers = [0.0; 3];
        for number in &mut numbers {
            let Some(value) = words.peek().and_then(|word| word.parse().ok()) else { break };
            *number = value;
            words.next();
        }
        let [degrees, minutes, seconds] = numbers;
        Self::checked(degrees, minutes, seconds, words.next()?, directions, limit)
    }

    fn checked(
        degrees: f64,
        minutes: f64,
        seconds: f64,
        direction: &str,
        directions: [char; 2],
        limit: u8,
    ) -> Option<Self> {
        let direction = direction.trim().to_ascii_uppercase();
        let direction = directions.into_iter().find(|known| direction == known.to_string())?;
        let seconds = (0.0..60.0).contains(&seconds).then(|| rounded(seconds, 1_000.0))?;
        Some(Self { degrees: whole(degrees, limit)?, minutes: whole(minutes, 59)?, seconds, direction })
    }

    fn to_text(&self) -> String {
        format!("{} {} {:.3} {}", self.degrees, self.minutes, self.seconds, self.direction)
    }
}

fn whole(number: f64, limit: u8) -> Option<u8> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before the cast")]
    (number.fract() == 0.0 && (0.0..=f64::from(limit)).contains(&number)).then_some(number as u8)
}

fn rounded(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}
