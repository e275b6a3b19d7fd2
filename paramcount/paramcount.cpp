// paramcount
