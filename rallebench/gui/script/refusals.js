/* Stands before Gradio's scripts, which drop the sentence of a refused message and say nothing of a locked login. */
(() => {
  const ask = window.fetch.bind(window);
  const words_of = async answer => {
    try {
      return (await answer.clone().json()).detail.error || '';
    } catch {
      return '';
    }
  };
  const say = words => {
    let note = document.getElementById('login-note');
    if (!note) {
      note = document.createElement('p');
      note.id = 'login-note';
      note.setAttribute('role', 'alert');
      document.querySelector('button')?.before(note);
    }
    note.textContent = words;
  };
  const log_in = async request => {
    const slow = setTimeout(() => say('Checking. Each try takes longer after a wrong one.'), 800);
    try {
      const answer = await ask(...request);
      clearTimeout(slow); // Gradio itself words a 400
      const is_worded = answer.ok || answer.status === 400;
      say(is_worded ? '' : (await words_of(answer)) || 'Enter the user name and the password.');
      return answer;
    } catch (error) {
      clearTimeout(slow);
      say('The program does not answer. Is rallebench still running?');
      throw error;
    }
  };
  const call = async request => {
    const answer = await ask(...request);
    const words = answer.ok ? '' : await words_of(answer);
    if (!words) return answer;
    const {patch} = (await answer.json()).detail;
    return new Response(JSON.stringify({over: true, ...patch, problem: words}));
  };
  window.fetch = (...request) => {
    const address = String(request[0]?.url || request[0]);
    if (/\/login\/?$/.test(address)) return log_in(request);
    return /\/component_server\/?$/.test(address) ? call(request) : ask(...request);
  };
})();
