// A citation whose address has lost its fragment still opens at the cited passage.

const passage = document.getElementById('passage');
if (passage && !location.hash) {
  passage.scrollIntoView({ block: 'center', behavior: 'instant' });
}
