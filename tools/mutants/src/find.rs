//! Finds the places of a source file which can be mutated, and what can stand there instead.
//!
//! The mutations are those of cargo-mutants: another operator, an operator less, a condition that is always true or always
//! false, an arm of a `match` less, a function that returns at once. Constants, patterns, attributes, the arguments of macros
//! and everything under `#[cfg(test)]` stay as they are. A function which already does nothing but return a value is not
//! made to return it.

use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A place of the source and its mutations.
#[derive(Clone, Debug)]
pub struct Site {
    /// Bytes of the file that are rewritten.
    pub range: Range<usize>,
    /// Line, counted from 1.
    pub line: usize,
    /// The modules, types and the function around it: `State::next`.
    pub function: String,
    /// How it is rewritten.
    pub form: Form,
    /// What can stand there, at least one.
    pub choices: Vec<String>,
}

/// What kind of place it is.
#[derive(Clone, Debug)]
pub enum Form {
    /// Two operands: the choices are other operators.
    Binary {
        /// The left operand.
        left: Range<usize>,
        /// The right operand.
        right: Range<usize>,
        /// The operator that stands there.
        operator: String,
    },
    /// `!` or `-` before this operand; the one choice is the operand alone.
    Unary(Range<usize>),
    /// A condition of an `if`, a `while` or a guard; the choices are `true` and `false`.
    Condition,
    /// The end of an arm's pattern, before its arrow, if a wildcard arm follows; the one choice is that it never matches.
    Arm,
    /// The begin of a function's body; the choices are what it returns.
    Body,
}

impl Site {
    /// What a choice does, in words.
    pub fn says(&self, choice: usize) -> String {
        let with = &self.choices[choice];
        match &self.form {
            Form::Binary { operator, .. } => format!("{operator} becomes {with}"),
            Form::Unary(_) => "the operator goes".to_string(),
            Form::Condition => format!("always {with}"),
            Form::Arm => "the arm goes".to_string(),
            Form::Body => format!("returns {with}"),
        }
    }
}

/// All places of a file, those around others first.
pub fn sites(text: &str) -> syn::Result<Vec<Site>> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder { names: Vec::new(), sites: Vec::new() };
    finder.visit_file(&file);
    Ok(finder.sites)
}

struct Finder {
    names: Vec<String>,
    sites: Vec<Site>,
}

impl Finder {
    fn push(&mut self, span: proc_macro2::Span, range: Range<usize>, form: Form, choices: Vec<String>) {
        if !choices.is_empty() {
            let (line, function) = (span.start().line, self.names.join("::"));
            self.sites.push(Site { range, line, function, form, choices });
        }
    }

    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.names.push(name);
        visit(self);
        self.names.pop();
    }

    fn condition(&mut self, condition: &syn::Expr) {
        if !has_let(condition) {
            let choices = ["true", "false"].map(str::to_string).to_vec();
            self.push(condition.span(), bytes(condition), Form::Condition, choices);
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if block.stmts.is_empty() || matches!(signature.ident.to_string().as_str(), "default" | "main") {
            return;
        }
        let at = block.brace_token.span.open().byte_range().end;
        let choices = returned(&signature.output).into_iter().filter(|choice| !is_already(block, choice)).collect();
        self.push(signature.span(), at..at, Form::Body, choices);
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !only_tests(&item.attrs) {
            self.within(item.ident.to_string(), |finder| visit::visit_item_mod(finder, item));
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !only_tests(&item.attrs) {
            self.within(type_name(&item.self_ty), |finder| visit::visit_item_impl(finder, item));
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.within(item.ident.to_string(), |finder| visit::visit_item_trait(finder, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.constness.is_some() || only_tests(&item.attrs) {
            return;
        }
        self.within(item.sig.ident.to_string(), |finder| {
            finder.function(&item.sig, &item.block);
            visit::visit_block(finder, &item.block);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_some() || only_tests(&item.attrs) {
            return;
        }
        self.within(item.sig.ident.to_string(), |finder| {
            finder.function(&item.sig, &item.block);
            visit::visit_block(finder, &item.block);
        });
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let Some(block) = &item.default else { return };
        self.within(item.sig.ident.to_string(), |finder| {
            finder.function(&item.sig, block);
            visit::visit_block(finder, block);
        });
    }

    // Must be known when it is compiled.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}

    fn visit_expr_repeat(&mut self, item: &'ast syn::ExprRepeat) {
        self.visit_expr(&item.expr);
    }

    fn visit_expr_if(&mut self, item: &'ast syn::ExprIf) {
        self.condition(&item.cond);
        visit::visit_expr_if(self, item);
    }

    fn visit_expr_match(&mut self, item: &'ast syn::ExprMatch) {
        let wild = item.arms.last().is_some_and(|arm| matches!(arm.pat, syn::Pat::Wild(_)) && arm.guard.is_none());
        for arm in item.arms.iter().filter(|arm| wild && arm.guard.is_none() && !matches!(arm.pat, syn::Pat::Wild(_))) {
            let at = bytes(&arm.pat).end;
            self.push(arm.pat.span(), at..at, Form::Arm, vec![String::new()]);
        }
        for (_, guard) in item.arms.iter().filter_map(|arm| arm.guard.as_ref()) {
            self.condition(guard);
        }
        visit::visit_expr_match(self, item);
    }

    fn visit_expr_unary(&mut self, item: &'ast syn::ExprUnary) {
        if matches!(item.op, syn::UnOp::Not(_) | syn::UnOp::Neg(_)) {
            self.push(item.span(), bytes(item), Form::Unary(bytes(&item.expr)), vec!["the operand".to_string()]);
        }
        visit::visit_expr_unary(self, item);
    }

    fn visit_expr_binary(&mut self, item: &'ast syn::ExprBinary) {
        let (left, right) = (bytes(&item.left), bytes(&item.right));
        if !has_let(&item.left) && !has_let(&item.right) {
            let (operator, choices) = others(&item.op);
            let form = Form::Binary { left, right, operator: operator.to_string() };
            let choices = choices.split_whitespace().map(str::to_string).collect();
            self.push(item.op.span(), bytes(item), form, choices);
        }
        visit::visit_expr_binary(self, item);
    }
}

/// The operator and those which can stand in its place.
fn others(operator: &syn::BinOp) -> (&'static str, &'static str) {
    use syn::BinOp::*;
    match operator {
        Add(_) => ("+", "- *"),
        Sub(_) => ("-", "+ /"),
        Mul(_) => ("*", "+ /"),
        Div(_) => ("/", "% *"),
        Rem(_) => ("%", "/ +"),
        And(_) => ("&&", "||"),
        Or(_) => ("||", "&&"),
        BitXor(_) => ("^", "| &"),
        BitAnd(_) => ("&", "| ^"),
        BitOr(_) => ("|", "& ^"),
        Shl(_) => ("<<", ">>"),
        Shr(_) => (">>", "<<"),
        Eq(_) => ("==", "!="),
        Ne(_) => ("!=", "=="),
        Lt(_) => ("<", "== > <="),
        Le(_) => ("<=", "> <"),
        Gt(_) => (">", "== < >="),
        Ge(_) => (">=", "< >"),
        AddAssign(_) => ("+=", "-= *="),
        SubAssign(_) => ("-=", "+= /="),
        MulAssign(_) => ("*=", "+= /="),
        DivAssign(_) => ("/=", "%= *="),
        RemAssign(_) => ("%=", "/= +="),
        BitXorAssign(_) => ("^=", "|= &="),
        BitAndAssign(_) => ("&=", "|= ^="),
        BitOrAssign(_) => ("|=", "&= ^="),
        ShlAssign(_) => ("<<=", ">>="),
        ShrAssign(_) => (">>=", "<<="),
        _ => ("", ""),
    }
}

/// What a function of this type can return at once.
fn returned(output: &syn::ReturnType) -> Vec<String> {
    let values: &[&str] = match output {
        syn::ReturnType::Default => &["()"],
        syn::ReturnType::Type(_, of) => match &**of {
            syn::Type::Tuple(tuple) if tuple.elems.is_empty() => &["()"],
            syn::Type::Path(path) => match path.path.segments.last().map(|last| last.ident.to_string()).as_deref() {
                Some("bool") => &["true", "false"],
                Some("u8" | "u16" | "u32" | "u64" | "u128" | "usize") => &["0", "1"],
                Some("i8" | "i16" | "i32" | "i64" | "i128" | "isize") => &["0", "1", "-1"],
                Some("f32" | "f64") => &["0.0", "1.0", "-1.0"],
                Some("Option") => &["None", "Some(Default::default())"],
                Some("Result") => &["Ok(Default::default())"],
                _ => &["Default::default()"],
            },
            syn::Type::Reference(reference) if reference.mutability.is_none() => match &*reference.elem {
                syn::Type::Path(path) if path.path.is_ident("str") => &["\"\"", "\"xyzzy\""],
                syn::Type::Slice(_) => &["&[]"],
                _ => &[],
            },
            syn::Type::Tuple(_) | syn::Type::Array(_) => &["Default::default()"],
            _ => &[],
        },
    };
    values.iter().map(ToString::to_string).collect()
}

/// True if a function with this body does nothing else than return `choice`. That it names a parameter is nothing.
fn is_already(block: &syn::Block, choice: &str) -> bool {
    let written: Vec<&syn::Stmt> = block.stmts.iter().filter(|statement| !only_names(statement)).collect();
    let is =
        |expression: &syn::Expr, text: &str| syn::parse_str(text).is_ok_and(|other: syn::Expr| *expression == other);
    match written.as_slice() {
        [] => choice == "()",
        [syn::Stmt::Expr(it, None)] => is(it, choice) || choice == "Default::default()" && is(it, "Self::default()"),
        _ => false,
    }
}

/// `let _ = now;` or `let _ = (packet, now);`
fn only_names(statement: &syn::Stmt) -> bool {
    let syn::Stmt::Local(syn::Local { pat: syn::Pat::Wild(_), init: Some(init), .. }) = statement else { return false };
    let is_name = |expression: &syn::Expr| matches!(expression, syn::Expr::Path(_));
    match &*init.expr {
        syn::Expr::Tuple(tuple) => tuple.elems.iter().all(is_name),
        other => is_name(other),
    }
}

fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        syn::Expr::Paren(inner) => has_let(&inner.expr),
        _ => false,
    }
}

/// `#[cfg(test)]`, `#[cfg(any(test, ...))]` or `#[test]`.
fn only_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string().contains("test"),
        syn::Meta::NameValue(_) => false,
    })
}

fn type_name(of: &syn::Type) -> String {
    match of {
        syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => "_".to_string(),
    }
}

fn bytes(of: &impl Spanned) -> Range<usize> {
    of.span().byte_range()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String, String)> {
        let all = sites(text).unwrap();
        let each =
            |site: Site| (0..site.choices.len()).map(|n| (site.line, site.function.clone(), site.says(n))).collect();
        all.into_iter().flat_map::<Vec<_>, _>(each).collect()
    }

    #[test]
    fn an_operator_has_others_in_its_place() {
        let text = "impl State {\n fn sum(&self) -> State {\n  self.a + 1\n }\n}\n";
        let here = "State::sum".to_string();
        let wanted = [(2, "returns Default::default()"), (3, "+ becomes -"), (3, "+ becomes *")];
        assert_eq!(found(text), wanted.map(|(line, says)| (line, here.clone(), says.to_string())));
    }

    #[test]
    fn constants_patterns_macros_and_tests_stay() {
        let text = "const A: u32 = 1 + 2;\nconst fn b() -> u32 { 1 + 2 }\nstatic C: u32 = !0;\n\
            fn d() -> impl Sized { assert!(1 < 2); match 3 { -1 => [0; 1 + 2], x => [x; 3] } }\n\
            #[cfg(test)] mod tests { fn e() -> u32 { 1 + 2 } }\n#[test] fn f() { g(1 + 2) }\n";
        assert_eq!(found(text), []);
    }

    #[test]
    fn an_arm_goes_only_if_a_wildcard_takes_what_it_took() {
        let with = found("fn f(x: u32) -> impl Sized { match x { 1 => 'a', 2 if x.odd() => 'b', _ => 'c' } }");
        let says: Vec<&str> = with.iter().map(|(.., says)| says.as_str()).collect();
        assert_eq!(says, ["the arm goes", "always true", "always false"]);
        assert_eq!(found("fn f(x: bool) -> impl Sized { match x { true => 'a', false => 'b' } }"), []);
    }

    #[test]
    fn a_let_chain_is_no_condition() {
        assert_eq!(found("fn f(x: T) -> impl Sized { if let Some(y) = x && y.odd() { 'a' } else { 'b' } }"), []);
    }

    /// Each of them would be the same program.
    #[test]
    fn what_a_function_does_already_is_no_mutation() {
        let text = "trait T { fn on(&mut self, now: u64) { let _ = now; } fn at(&self, a: A, b: B) -> Option<u8> \
            { let _ = (a, b); None } fn forced(&self) -> bool { false } }\n\
            impl S { fn new() -> Self { Self::default() } fn seen(&self) { let _ = self.look(); } }";
        let says: Vec<(String, String)> = found(text).into_iter().map(|(_, function, says)| (function, says)).collect();
        let wanted =
            [("T::at", "returns Some(Default::default())"), ("T::forced", "returns true"), ("S::seen", "returns ()")];
        assert_eq!(says, wanted.map(|(function, says)| (function.to_string(), says.to_string())));
    }
}
