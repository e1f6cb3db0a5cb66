//! Forms: their fields, and their change, which is made once.
//!
//! ```text
//! GET /x            ─▶ 303 to /x?key=K, a fresh request key
//! GET /x?key=K      ─▶ the form; if K is bound, its result and a link to a new form
//! POST /x?key=K     ─▶ the change under K, then 303 to GET /x?key=K
//!      what moves money: 303 to its review, GET /x?key=K&review=…, whose button makes the change
//! ```
//!
//! The address of a form carries its request key. So a double click, *back* and a reload are one change: they
//! send the same key, and the book answers it again. A change that shows a secret is answered at once, since
//! no later page can show it; the same form sent again reports that it was shown.
//!
//! A form that moves money shows what it will do before it does it: the first sending is a rehearsal, and the
//! second one carries what the first one had, with `confirm`. The review has an address, so that *back* and a
//! reload never send a form again. Only the console's own form leads to one: under a link from
//! elsewhere no field is filled in. If a browser does not send its referrer, the review is the answer to the
//! form itself.
//!
//! Errors stay on the form, beside their field, with all values that were written but passwords.
//!
//! Never: a change without a request key, or under a key that the form's address does not name.

use axum::extract::Request as HttpRequest;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get};
use holdfast_accounts::{FormWords, Reason, Request};
use holdfast_domain::CommandKey;
use holdfast_domain::admin::{RequestRecord, UseCase};
use http::StatusCode;
use uuid::Uuid;

use crate::failure::Failure;
use crate::kit::flash;
use crate::kit::{
    Cell, ConsoleState, Facts, FieldKind, Form, FormField, Notice, Page, Section, SentFields,
    Snippet, Tone, Visit, isolated, noun, of_thing, put_beside, read_form, with_query,
};

/// Name of the parameter that carries the request key.
pub(crate) const KEY: &str = "key";
/// Name of the field that the second sending of a reviewed form has.
const CONFIRM: &str = "confirm";
/// Name of the parameter that carries the fields of a review.
pub(crate) const REVIEW: &str = "review";
/// Longest address of a review, in bytes: proxies refuse longer ones.
const REVIEW_MAX: usize = 4 << 10;

/// Frame of a form: its page without the form, and its fields.
#[derive(Debug, Clone)]
pub(crate) struct FormFrame {
    pub(crate) page: Page,
    pub(crate) fields: Vec<FormField>,
    pub(crate) submit: String,
    pub(crate) is_grave: bool,
}

impl FormFrame {
    /// Title, effect and button of a form.
    fn new(words: FormWords) -> Self {
        let FormWords { title, hint, submit, is_grave, .. } = words;
        let (page, submit) = (Page::new(title).intro(hint), submit.to_owned());
        Self { page, fields: Vec::new(), submit, is_grave }
    }

    /// The same whose title has the name of its resource.
    pub(crate) fn about(mut self, name: &str) -> Self {
        self.page.title = format!("{} {}", self.page.title, isolated(name));
        self
    }

    /// The same below another page.
    pub(crate) fn below(self, text: impl Into<String>, href: impl Into<String>) -> Self {
        Self { page: self.page.below(text, href), ..self }
    }

    /// The same with another explanation.
    pub(crate) fn intro(self, intro: impl Into<String>) -> Self {
        Self { page: self.page.intro(intro), ..self }
    }

    /// The same with a section above the fields.
    pub(crate) fn section(self, section: impl Into<Section>) -> Self {
        Self { page: self.page.section(section), ..self }
    }

    /// The same with more fields.
    pub(crate) fn fields(mut self, fields: impl IntoIterator<Item = FormField>) -> Self {
        self.fields.extend(fields);
        self
    }
}

/// Outcome of a form: done, or rehearsed.
#[derive(Debug, Clone)]
pub(crate) struct FormOutcome {
    /// Facts of the change: shown in a review, and beside a secret.
    pub(crate) sections: Vec<Section>,
    /// Page to go to; unset: the form's own, with its result.
    pub(crate) next: Option<String>,
    /// True if the sections show a secret, which no later page can show.
    pub(crate) is_told_once: bool,
}

impl FormOutcome {
    /// A change without sections of its own.
    pub(crate) const fn done() -> Self {
        Self { sections: Vec::new(), next: None, is_told_once: false }
    }

    /// A change with a secret under this title, and the sentence that it is shown once.
    pub(crate) fn secret(sentence: String, title: &str, secret: impl Into<String>) -> Self {
        let outcome = Self::done().section(Notice::new(Tone::Warning, sentence));
        outcome.section(Snippet::new(title, secret)).telling_once()
    }

    /// The same with a section for its review.
    pub(crate) fn section(mut self, section: impl Into<Section>) -> Self {
        self.sections.push(section.into());
        self
    }

    /// The same with a secret.
    pub(crate) const fn telling_once(mut self) -> Self {
        self.is_told_once = true;
        self
    }

    /// The same, going to another page.
    pub(crate) fn next(self, address: impl Into<String>) -> Self {
        Self { next: Some(address.into()), ..self }
    }
}

/// Fields of a form, and the request that its change is made under.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) fields: SentFields,
    pub(crate) request: Request,
}

/// A form's page.
pub(crate) trait FormPage: Send + Sync + Sized + 'static {
    /// True for what moves money: it is shown before it is done.
    const IS_REVIEWED: bool = false;
    /// Words of a form that shares its use case with another one; unset: those of the use case.
    const WORDS: Option<FormWords> = None;
    /// Fields that identify a person. No digest contains them, because it outlives their erasure.
    const PRIVATE: &'static [&'static str] = &[];

    /// Reads what the form is about.
    fn open(visit: &Visit) -> impl Future<Output = Result<Self, Failure>> + Send;

    /// Adds the resource, and the fields with their first values, to the form's own words.
    fn frame(&self, form: FormFrame) -> FormFrame;

    /// Reads the fields and makes the change under this request, or rehearses it.
    fn apply(
        &self,
        visit: &Visit,
        sent: &Submission,
    ) -> impl Future<Output = Result<FormOutcome, Failure>> + Send;
}

/// Writes forms that have a reason only. Each is about the resource that `opened` reads and `framed` names, makes its
/// change by its id, and leads back to its page in this folder.
macro_rules! reason_forms {
    ($($(#[$doc:meta])* $form:ident($it:ident: $resource:ty) {
        $change:ident($id:expr), $folder:literal, $field:expr $(, $words:expr)?
    })+) => {$(
        $(#[$doc])*
        pub(crate) struct $form($resource);

        impl $crate::kit::form::FormPage for $form {
            $(const WORDS: Option<holdfast_accounts::FormWords> = Some($words);)?

            async fn open(visit: &Visit) -> Result<Self, Failure> {
                Ok(Self(opened(visit).await?))
            }

            fn frame(&self, form: FormFrame) -> FormFrame {
                framed(form, &self.0).fields([$field])
            }

            async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
                let $it = &self.0;
                let id = $id;
                visit.accounts().$change(visit.principal(), &sent.request, id).await?;
                Ok(FormOutcome::done().next(format!("/{}/{id}", $folder)))
            }
        }
    )+};
}

pub(crate) use reason_forms;

/// Both methods of a form, for visitors that have its use case; the use case itself judges again.
pub(crate) fn methods<F: FormPage>(use_case: UseCase) -> MethodRouter<ConsoleState> {
    get(move |visit| show::<F>(visit, use_case))
        .post(move |visit, request| send::<F>(visit, request, use_case))
}

/// Shows a form, or what it did.
async fn show<F: FormPage>(visit: Visit, use_case: UseCase) -> Result<Response, Failure> {
    visit.principal().authorize(use_case)?;
    let Some(key) = visit.query.get(KEY) else {
        return Ok(Redirect::to(&fresh(&visit)).into_response());
    };
    let key = request_key(key)?;
    // A second tab may have used the key by now: the page shows the result, and does nothing
    // again. Before the form is opened, since the change may have ended its resource.
    if let Some(record) = visit.accounts().request_record(visit.principal(), key).await? {
        return Ok(done(&visit, &record, words::<F>(use_case)).await?.into_response());
    }
    let form = F::open(&visit).await?;
    let frame = frame(&form, use_case)?;
    // A link from elsewhere could carry an amount, which its reader would only have to confirm.
    let review = visit.query.get(REVIEW).filter(|_fields| F::IS_REVIEWED && visit.is_own);
    let Some(fields) = review.map(|fields| SentFields::parse(fields.as_bytes())) else {
        let fields = frame.fields.clone();
        return Ok(page(&visit, frame, fields, None).into_response());
    };
    // Rehearsed at each view: the balance may have moved since the form was sent.
    Ok(match apply(&form, (&visit, use_case), (key, &fields), true).await {
        Ok(rehearsed) => review_page(&visit, frame, &fields, rehearsed).into_response(),
        Err(failure) => failed_page(&visit, frame, &fields, failure).into_response(),
    })
}

/// Takes a form that was sent.
async fn send<F: FormPage>(
    visit: Visit,
    request: HttpRequest,
    use_case: UseCase,
) -> Result<Response, Failure> {
    visit.principal().authorize(use_case)?;
    let missing =
        || Failure::new(StatusCode::BAD_REQUEST, "This form has no request key. Open it again.");
    let key = request_key(visit.query.get(KEY).ok_or_else(missing)?)?;
    let (parts, body) = request.into_parts();
    let fields = read_form(&parts.headers, body).await?;
    let page_of = match F::open(&visit).await {
        Ok(page_of) => page_of,
        Err(failure) if failure.status == StatusCode::NOT_FOUND => {
            return done_before(&visit, key).await?.ok_or(failure);
        }
        Err(failure) => return Err(failure),
    };
    let frame = frame(&page_of, use_case)?;
    // A client may send `confirm` at once: a review saves a person from a slip, and is no right.
    let is_rehearsal = F::IS_REVIEWED && fields.get(CONFIRM).is_none();
    match apply(&page_of, (&visit, use_case), (key, &fields), is_rehearsal).await {
        Err(failure) => {
            let is_gone =
                failure.status == StatusCode::NOT_FOUND || is_choice_gone(&frame, &failure);
            let way = if is_gone { done_before(&visit, key).await? } else { None };
            let failed = || failed_page(&visit, frame, &fields, failure).into_response();
            Ok(way.unwrap_or_else(failed))
        }
        Ok(applied) if is_rehearsal => Ok(match review_address(&visit, &fields) {
            Some(address) => Redirect::to(&address).into_response(),
            None => review_page(&visit, frame, &fields, applied).into_response(),
        }),
        // No redirect: its address would have to carry the secret, or the server to keep it.
        Ok(applied) if applied.is_told_once => {
            let page = Page { actions: Vec::new(), dangers: Vec::new(), ..frame.page };
            let page = match visit.accounts().request_record(visit.principal(), key).await? {
                Some(record) => {
                    page.section(flash_of(&visit, &record, words::<F>(use_case)).await?)
                }
                None => page,
            };
            Ok(applied.sections.into_iter().fold(page, Page::section).into_response())
        }
        Ok(applied) => {
            let address = match &applied.next {
                Some(next) => flash::address(next, &key_text(key), words::<F>(use_case)),
                None => done_address(&visit, key),
            };
            Ok(Redirect::to(&address).into_response())
        }
    }
}

/// Words of the form at the path of this use case.
fn words<F: FormPage>(use_case: UseCase) -> Option<FormWords> {
    F::WORDS.or_else(|| FormWords::of(use_case))
}

/// Frame of the form at the path of this use case.
fn frame<F: FormPage>(form: &F, use_case: UseCase) -> Result<FormFrame, Failure> {
    let words = words::<F>(use_case).ok_or_else(Failure::not_found)?;
    Ok(form.frame(FormFrame::new(words)))
}

/// Address of the result of a form.
fn done_address(visit: &Visit, key: CommandKey) -> String {
    with_query(&visit.path, &[(KEY, Some(&key_text(key)))])
}

/// True if the chosen value is not a choice any more, such as a role that the form has ended.
fn is_choice_gone(frame: &FormFrame, failure: &Failure) -> bool {
    let of_failure = |field: &&FormField| Some(field.name) == failure.field.as_deref();
    let field = frame.fields.iter().find(of_failure);
    field.is_some_and(|field| matches!(field.kind, FieldKind::Select(_)))
}

/// The address of the result of a form, if its key is bound: a second click may no longer find what the first one
/// has ended, and is no failure.
async fn done_before(visit: &Visit, key: CommandKey) -> Result<Option<Response>, Failure> {
    let bound = visit.accounts().request_record(visit.principal(), key).await?;
    Ok(bound.map(|_record| Redirect::to(&done_address(visit, key)).into_response()))
}

/// Makes the change under this request key, or rehearses it.
async fn apply<F: FormPage>(
    form: &F,
    (visit, use_case): (&Visit, UseCase),
    (key, fields): (CommandKey, &SentFields),
    dry_run: bool,
) -> Result<FormOutcome, Failure> {
    let request = Request { dry_run, ..change::<F>(visit, key, fields)? };
    let sent = Submission { fields: fields.clone(), request };
    form.apply(visit, &sent).await.map_err(|failure| failure.of(use_case))
}

/// Address of the form under a fresh key, with all else that its query has.
fn fresh(visit: &Visit) -> String {
    let key = Uuid::new_v4().to_string();
    let mut params = params(visit, &[KEY, REVIEW]);
    params.push((KEY, Some(&key)));
    with_query(&visit.path, &params)
}

fn request_key(text: &str) -> Result<CommandKey, Failure> {
    // One spelling: two of one key would be two requests.
    let id = Uuid::try_parse(text).ok().filter(|id| id.as_hyphenated().to_string() == text);
    let bad = || {
        Failure::new(
            StatusCode::BAD_REQUEST,
            "The request key of this form is not valid. Open a new form.",
        )
    };
    id.map(CommandKey::from).ok_or_else(bad)
}

fn key_text(key: CommandKey) -> String {
    Uuid::from_bytes(key.to_bytes()).to_string()
}

/// The request of a change: bound to the form's path and to all fields but the confirmation and those
/// that identify a person.
fn change<F: FormPage>(
    visit: &Visit,
    key: CommandKey,
    fields: &SentFields,
) -> Result<Request, Failure> {
    let reason: Option<Reason> = fields.read("reason")?;
    let is_bound = |name: &str| name != CONFIRM && !F::PRIVATE.contains(&name);
    let mut bound: Vec<_> = fields.iter().filter(|(name, _)| is_bound(name)).collect();
    // The digest is of names and values: their order is the sender's, and makes no other request.
    bound.sort_unstable();
    let form = [b"form".as_slice(), visit.path.as_bytes()];
    let (mut parts, mut present) = (form.to_vec(), form.to_vec());
    for (name, value) in bound {
        // Trimmed as they are read: blanks make no other request.
        let field = [name.as_bytes(), value.trim().as_bytes()];
        parts.extend(field);
        // A version that adds a field sends it empty, and one before does not send it.
        if !value.trim().is_empty() {
            present.extend(field);
        }
    }
    Ok(Request::new(key, &parts, reason).with_canonical(&present))
}

/// The fields with what was written into them.
fn kept(fields: &[FormField], sent: &SentFields) -> Vec<FormField> {
    fields.iter().map(|field| field.clone().holding(sent)).collect()
}

/// The page of a form, perhaps with what is wrong with what was written.
fn page(
    visit: &Visit,
    frame: FormFrame,
    mut fields: Vec<FormField>,
    failed: Option<Failure>,
) -> Page {
    let FormFrame { mut page, submit, is_grave, .. } = frame;
    if let Some(failure) = failed {
        page = page.failed(&failure);
        page = page.section(Notice::new(Tone::Bad, put_beside(&mut fields, failure)));
    }
    page.section(Form { action: address(visit), fields, submit, is_grave })
}

/// The query of a form but for these parameters.
fn params<'s>(visit: &'s Visit, without: &[&str]) -> Vec<(&'s str, Option<&'s str>)> {
    let kept = visit.query.iter().filter(|(name, _)| !without.contains(name));
    kept.map(|(name, value)| (name, Some(value))).collect()
}

/// Address of the form as it was opened.
fn address(visit: &Visit) -> String {
    with_query(&visit.path, &params(visit, &[REVIEW]))
}

/// Address of the review of these fields, for a browser that sends its referrer.
fn review_address(visit: &Visit, fields: &SentFields) -> Option<String> {
    let mut packed = form_urlencoded::Serializer::new(String::new());
    let packed = packed.extend_pairs(fields.iter()).finish();
    let mut params = params(visit, &[REVIEW]);
    params.push((REVIEW, Some(&packed)));
    let address = with_query(&visit.path, &params);
    // Without `Sec-Fetch-Site` the address would show an empty form, and a long one may be
    // refused on the way. The review is the answer to the form then.
    Some(address).filter(|address| visit.is_own && address.len() <= REVIEW_MAX)
}

/// The page of a form with what was written, and what is wrong with it.
fn failed_page(visit: &Visit, frame: FormFrame, sent: &SentFields, failure: Failure) -> Page {
    let kept = kept(&frame.fields, sent);
    page(visit, frame, kept, Some(failure))
}

/// A review: the outcome of a rehearsal, and the button that makes it real.
fn review_page(visit: &Visit, frame: FormFrame, sent: &SentFields, applied: FormOutcome) -> Page {
    let FormFrame { page, fields, submit, is_grave } = frame;
    let mut hidden: Vec<_> = kept(&fields, sent).into_iter().map(FormField::hidden).collect();
    hidden.push(FormField::hidden_value(CONFIRM, "yes"));
    let page = page.section(Notice::new(Tone::Plain, "Review it: nothing has been done yet."));
    let page = applied.sections.into_iter().fold(page, Page::section);
    page.section(Form { action: address(visit), fields: hidden, submit, is_grave })
}

/// Result of the request of a form.
async fn flash_of(
    visit: &Visit,
    record: &RequestRecord,
    form: Option<FormWords>,
) -> Result<Notice, Failure> {
    flash::notice(visit.accounts(), &visit.visitor, record, form).await
}

/// The page of a form whose request key is bound.
async fn done(
    visit: &Visit,
    record: &RequestRecord,
    form: Option<FormWords>,
) -> Result<Page, Failure> {
    let mut rows = vec![("Done at", Cell::moment(record.at))];
    for thing in &record.things {
        let name = format!("{} {}", noun(*thing), Uuid::from_bytes(thing.id()));
        rows.push((
            "Resource",
            match of_thing(*thing) {
                Some(href) => Cell::link(name, href),
                None => Cell::text(name),
            },
        ));
    }
    let again = with_query(&visit.path, &params(visit, &[KEY, REVIEW]));
    let notice = flash_of(visit, record, form).await?.link("A new form", again);
    let page = Page::new("Done").section(notice).section(Facts::new("", rows));
    Ok(page.intro("This form was sent and acted once: sending it again changes nothing."))
}
