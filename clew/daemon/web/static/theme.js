// Before anything is painted: the choice of light or dark, where one was made.
(function () {
  var chosen = null;
  try { chosen = localStorage.getItem("clew-theme"); } catch (error) { /* storage is closed to us: follow the system */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
