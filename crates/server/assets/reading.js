// A citation whose address has lost its fragment still opens at the cited passage, and the keyboard goes on from there.

if (document.getElementById('passage') && !location.hash) {
  location.replace('#passage');
}
