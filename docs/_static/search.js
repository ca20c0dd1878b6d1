// The search of Sphinx fetches the pages that it found, to show an excerpt of each.
// Here it takes their texts from `pages`, which the build appends to this file.
window.fetch = async url => new Response(pages[decodeURI(url).replace(/^\.\//, '')]);
