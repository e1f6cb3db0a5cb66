//! Texts of a page: the blocks of its template, each with the values that it shows.
//!
//! ```text
//! {% block low %}Low and empty wallets{% endblock %}                 templates/pages/home.txt
//! texts! { #[template(path = "pages/home.txt")] WatchText { Low = "low", } }
//! WatchText::Low.to_string()
//! ```
//!
//! A block that the template does not have, and a value that the block's text does not find, do not compile.

/// Writes an enum with a variant for each block of a template.
// The attribute is passed on token by token, with the page's own `#`: the derive writes the `self` of its functions
// with the span of the enum's first token and uses it with that of a variant, and hygiene keeps the two apart unless
// both come from the page.
macro_rules! texts {
    ($hash:tt $template:tt $name:ident $(<$life:lifetime>)? {
        $($text:ident $({ $($value:ident: $kind:ty),+ })? = $block:literal),+ $(,)?
    }) => {
        #[derive(Debug, ::askama::Template)]
        $hash $template
        enum $name $(<$life>)? {
            $(#[template(block = $block)] $text $({ $($value: $kind),+ })?),+
        }
    };
}
