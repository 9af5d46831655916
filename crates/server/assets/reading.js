// Scrolls to the cited passage if the address has lost its fragment.

if (document.getElementById('passage') && !location.hash) {
  location.replace('#passage');
}
