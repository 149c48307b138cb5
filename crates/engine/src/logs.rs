//! The log: one line of text or one JSON object for an event, with the fields of the spans around it.
//!
//! Both forms have the same fields. The innermost span's come last and win over those of the same name further out; the
//! event's own win over all. In text, nothing stands between a field's name and its value, also where colours are on, so that
//! `grep fleet=staging` finds everything where fleets are the log scope.
//!
//! Three fields mean more: `outcome` (`unchanged`, `changed`, `failed`) colours the message, `heading = true` makes it a
//! heading, and `diff` holds lines that follow the event's own; see [`outcome`].

use std::io::Write as _;

use portolan_core::job::LogScope;
use portolan_core::{Clock, Colour};
use serde_json::Value;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, Scope};

mod fields;
pub(crate) mod levels;
mod line;
pub mod outcome;
pub mod telemetry;
#[cfg(test)]
pub(crate) mod testing;
mod text;

use fields::LogFields;
use levels::SCOPE;
use line::LogLine;

/// How an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFormat {
    /// For people.
    Text(Colour),
    /// For programs: one JSON object a line.
    Json,
}

/// Writes events.
pub struct LogLayer<W> {
    form: LineFormat,
    clock: Clock,
    writer: W,
    scope: LogScope,
}

impl<W> LogLayer<W> {
    /// A layer that writes to `writer`, such as `std::io::stderr`.
    pub fn new(form: LineFormat, clock: Clock, writer: W) -> Self {
        Self { form, clock, writer, scope: SCOPE }
    }

    /// The same in the words of a job for log scopes.
    #[must_use]
    pub fn naming(self, scope: LogScope) -> Self {
        Self { scope, ..self }
    }

    /// The fields of the spans around an event, from the outermost on.
    fn surroundings<S>(event: &Event<'_>, context: &Context<'_, S>) -> LogFields
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let mut all = LogFields::default();
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            if let Some(fields) = span.extensions().get::<LogFields>() {
                all.extend(fields);
            }
        }
        all
    }
}

impl<S, W> Layer<S> for LogLayer<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = LogFields::default();
        attributes.record(&mut fields);
        fields.name_scope(self.scope);
        span.extensions_mut().replace(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<LogFields>()
        {
            values.record(fields);
            fields.name_scope(self.scope);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let line = LogLine::new(event, (self.clock)(), &Self::surroundings(event, &context));
        let text = match self.form {
            LineFormat::Text(colour) => line.text(colour, self.scope),
            LineFormat::Json => Value::Object(line.json()).to_string() + "\n",
        };
        // Nobody is left to tell.
        let _ = self.writer.make_writer().write_all(text.as_bytes());
    }
}
