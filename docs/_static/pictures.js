// A picture leads to itself in full size, unless it leads to a notebook.
'use strict';
document.addEventListener('DOMContentLoaded', () => {
  for (const image of document.querySelectorAll('article img')) {
    if (image.closest('a') || !/^(https?|file):/.test(image.src)) continue;
    const link = document.createElement('a');
    link.href = image.src;
    image.replaceWith(link);
    link.append(image);
  }
});
