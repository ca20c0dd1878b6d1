// The search of Sphinx fetches the pages that it found, to show an excerpt of each.
// Here it takes their texts from `pages`, which the build appends to this file.
window.fetch = async url => new Response(pages[decodeURI(url).replace(/^\.\//, '')]);

// It looks for words and leaves out numbers. Pages with the words as they were typed,
// such as "Lemma 4", come first, and the excerpt shows that place.
const typed = (new URLSearchParams(location.search).get('q') || '').trim().toLowerCase();
const has = text => typed !== '' && text.toLowerCase().includes(typed);
Scorer.score = ([page, title, , , score]) =>
  score + (has(title) ? 100 : 0) + (has(pages[`${page}.html`] || '') ? 20 : 0);
const summary = Search.makeSearchSummary;
Search.makeSearchSummary = (html, words, anchor) =>
  summary(html, has(Search.htmlToText(html, anchor)) ? [typed] : words, anchor);
